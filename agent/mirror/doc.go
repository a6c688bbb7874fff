// Package mirror keeps the snapshot in step with the API server, as the node itself: the
// objects that the Node authorizer lets this node read because its pods refer to them, what
// kubelet watches in any case, the collections of the policy's warm list, and the tokens of
// the pods' service accounts.
//
// Two classes. Watched: pods of this node, its Node, services, csidrivers, runtimeclasses,
// endpointslices and the warm list, one watch a collection; secrets and configmaps, one
// watch an object. Got: claims, volumes, attachments, CSINode, resource claims and service
// accounts, which a node may not list; they are read when pods change, and slowly.
//
// Nothing that an API server answers is taken before it has shown, after that answer, that
// it is the cluster this node is in (see identity.go), and no full list removes pods unless
// it is believed (see belief.go).
package mirror
