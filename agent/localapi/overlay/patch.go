package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// shapes tell how lists of a kind are merged.
var shapes = map[string]any{"pods": corev1.Pod{}, "nodes": corev1.Node{}}

// The API server's own bounds of a JSON patch, in operations and in bytes that it copies.
const (
	mostOperations = 10000
	mostCopied     = 3 << 20
)

// ErrPatchType says that patches of a type are not applied on the node.
var ErrPatchType = errors.New("no patch that is applied on the node")

// Patch applies a patch of any type that kubelet may send to an object of a resource.
// Fields that this agent does not know stay.
func Patch(resource, contentType string, object, patch []byte) ([]byte, error) {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, fmt.Errorf("%w: content type %q: %w", ErrPatchType, contentType, err)
	}
	switch types.PatchType(media) {
	case types.StrategicMergePatchType:
		return strategic(resource, object, patch)
	case types.MergePatchType:
		return jsonpatch.MergePatch(object, patch)
	case types.JSONPatchType:
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, err
		}
		if len(operations) > mostOperations {
			return nil, fmt.Errorf("the patch has %d operations, more than %d", len(operations), mostOperations)
		}
		options := jsonpatch.NewApplyOptions()
		options.AccumulatedCopySizeLimit = mostCopied
		return operations.ApplyWithOptions(object, options)
	}
	return nil, fmt.Errorf("%w: %q", ErrPatchType, media)
}

func strategic(resource string, object, patch []byte) ([]byte, error) {
	var original, change map[string]any
	if err := utiljson.Unmarshal(object, &original); err != nil {
		return nil, err
	}
	if err := utiljson.Unmarshal(patch, &change); err != nil {
		return nil, err
	}
	shape, err := strategicpatch.NewPatchMetaFromStruct(shapes[resource])
	if err != nil {
		return nil, err
	}
	result, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(original, change, lenient{shape})
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// lenient knows the fields that its inner one knows; others, of newer servers, are merged
// as plain JSON.
type lenient struct{ strategicpatch.LookupPatchMeta }

func (l lenient) LookupPatchMetadataForStruct(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	if l.LookupPatchMeta == nil {
		return lenient{}, strategicpatch.PatchMeta{}, nil
	}
	return known(l.LookupPatchMeta.LookupPatchMetadataForStruct(key))
}

func (l lenient) LookupPatchMetadataForSlice(key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	if l.LookupPatchMeta == nil {
		return lenient{}, strategicpatch.PatchMeta{}, nil
	}
	return known(l.LookupPatchMeta.LookupPatchMetadataForSlice(key))
}

// known takes an error for a field that is not.
func known(inner strategicpatch.LookupPatchMeta, meta strategicpatch.PatchMeta, unknown error) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	if unknown != nil {
		inner, meta = nil, strategicpatch.PatchMeta{}
	}
	return lenient{inner}, meta, nil
}

func (l lenient) Name() string {
	if l.LookupPatchMeta == nil {
		return ""
	}
	return l.LookupPatchMeta.Name()
}
