// Package access decides who may have an answer of the node's own.
//
// While the API server can be asked, it decides: who a token belongs to, and whether they
// may. What it allowed is remembered, and that alone counts while the node is cut off; then
// tokens are checked with the cached keys of their issuer.
package access
