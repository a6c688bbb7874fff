// Package answer answers requests from what the node holds on its own disk.
package answer
