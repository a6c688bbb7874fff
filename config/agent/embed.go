// Package agent holds the agent's unit files, as rekindle-agent install writes them.
package agent

import "embed"

// Files are the units, the drop-in and the generator; the sample configuration is not
// installed, since its values are the defaults.
//
//go:embed *.service *.service.d/*.conf *.socket *.timer *.generator
var Files embed.FS
