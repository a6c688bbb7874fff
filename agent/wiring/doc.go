// Package wiring points kubelet at the agent for as long as the agent serves, and no
// longer. What it writes lies in /run; kubelet's own files stay as they are. The unit
// graph is in docs/wiring.md.
package wiring
