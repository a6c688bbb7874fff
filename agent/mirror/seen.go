package mirror

import "rekindle.edge/agent/snapshot"

// Seen takes an object that the API server has answered kubelet; raw is nil when there is
// none. An object that is known by its UID is taken as it is; of any other the mirror makes
// sure itself, and soon.
func (m *Mirror) Seen(scope snapshot.Scope, raw []byte) {
	held, ok := m.objects.Get(scope.Resource, scope.Namespace, scope.Name)
	if raw == nil && !ok && m.objects.Known(scope) {
		return
	}
	if raw != nil && ok {
		o, err := object(raw, "", "")
		if err == nil && o.UID == held.UID && o.UID != "" && (o.ResourceVersion == held.ResourceVersion || m.objects.Apply(scope, snapshot.Modified, o) == nil) {
			return
		}
	}
	m.Written(scope)
}
