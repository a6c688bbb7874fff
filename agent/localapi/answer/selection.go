package answer

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/localapi/collection"
)

// selectable are the fields that the API server selects built-in kinds by, beside name and
// namespace. False-valued booleans are written out by it: the value stands for absence.
var selectable = map[schema.GroupResource]map[string]string{
	{Resource: "pods"}: {
		"spec.nodeName": "", "spec.restartPolicy": "", "spec.schedulerName": "", "spec.serviceAccountName": "",
		"spec.hostNetwork": "false", "status.phase": "", "status.podIP": "", "status.nominatedNodeName": "",
	},
	{Resource: "nodes"}:      {"spec.unschedulable": "false"},
	{Resource: "secrets"}:    {"type": ""},
	{Resource: "services"}:   {"spec.clusterIP": "", "spec.type": ""},
	{Resource: "namespaces"}: {"status.phase": ""},
	podCertificates:          {"spec.nodeName": ""},
}

// builtin are the groups whose kinds the API server selects by the fields above alone.
// Kinds of other groups may name fields of their own, which are compared as they are.
func builtin(group string) bool {
	switch group {
	case "", "apps", "batch", "autoscaling", "policy", "extensions":
		return true
	}
	return len(group) > 7 && group[len(group)-7:] == ".k8s.io"
}

// selection says which objects of a collection a request is about.
type selection struct {
	resource  schema.GroupResource
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func newSelection(resource schema.GroupResource, namespace string, o options) (selection, error) {
	s := selection{resource: resource, namespace: namespace, labels: labels.Everything(), fields: fields.Everything()}
	if o.LabelSelector != nil {
		s.labels = o.LabelSelector
	}
	if o.FieldSelector != nil {
		s.fields = o.FieldSelector
	}
	for _, requirement := range s.fields.Requirements() {
		if !s.known(requirement.Field) {
			return s, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", requirement.Field))
		}
	}
	return s, nil
}

func (s selection) known(field string) bool {
	if field == "metadata.name" || field == "metadata.namespace" || !builtin(s.resource.Group) {
		return true
	}
	_, ok := selectable[s.resource][field]
	return ok
}

// all says whether nothing is left out.
func (s selection) all() bool { return s.labels.Empty() && s.fields.Empty() }

// has says whether an object is selected. It is false for nil.
func (s selection) has(item *collection.Item) bool {
	if item == nil || s.namespace != "" && item.Namespace != s.namespace {
		return false
	}
	if !s.fields.Empty() && !s.fields.Matches(itemFields{item, selectable[s.resource]}) {
		return false
	}
	return s.labels.Empty() || s.labels.Matches(item.Labels())
}

// itemFields are an object's for a field selector.
type itemFields struct {
	item   *collection.Item
	absent map[string]string
}

func (f itemFields) Has(string) bool { return true }

func (f itemFields) Get(field string) string {
	if value := f.item.Field(field); value != "" {
		return value
	}
	return f.absent[field]
}
