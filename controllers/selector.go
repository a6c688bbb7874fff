package controllers

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"rekindle.edge/api/v1alpha1"
)

// nodeSelector returns what selects the policy's nodes, or an error that names the field.
func nodeSelector(spec *v1alpha1.EdgeRecoveryPolicySpec) (labels.Selector, error) {
	path := field.NewPath("spec")
	if spec.NodeSelector != nil {
		path = path.Child("nodeSelector")
		if err := checkSelector(spec.NodeSelector, path); err != nil {
			return nil, err
		}
		selector, err := metav1.LabelSelectorAsSelector(spec.NodeSelector)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return selector, nil
	}
	names := make([]string, 0, len(spec.NodePools))
	for _, pool := range spec.NodePools {
		names = append(names, pool.Name)
	}
	requirement, err := labels.NewRequirement(spec.NodePoolLabelKey, selection.In, names)
	if err != nil {
		return nil, fmt.Errorf("%s or %s: %w", path.Child("nodePoolLabelKey"), path.Child("nodePools"), err)
	}
	return labels.NewSelector().Add(*requirement), nil
}

// checkPodSelectors returns the first of the policy's other label selectors that cannot be
// parsed, as an error that names the field.
func checkPodSelectors(spec *v1alpha1.EdgeRecoveryPolicySpec) error {
	path := field.NewPath("spec", "cacheWarmup", "resources")
	for i, resource := range spec.CacheWarmup.Resources {
		if err := checkSelector(resource.LabelSelector, path.Index(i).Child("labelSelector")); err != nil {
			return err
		}
	}
	path = field.NewPath("spec", "startupOrdering", "stages")
	for i, stage := range spec.StartupOrdering.Stages {
		for j, pods := range stage.Pods {
			if err := checkSelector(pods.LabelSelector, path.Index(i).Child("pods").Index(j).Child("labelSelector")); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkSelector returns one error, and the same one each time: the order in which a map of
// labels is checked is random, and the text ends up in a condition.
func checkSelector(selector *metav1.LabelSelector, path *field.Path) error {
	problems := metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
	if len(problems) == 0 {
		return nil
	}
	return slices.MinFunc(problems, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
}
