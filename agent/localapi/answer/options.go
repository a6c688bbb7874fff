package answer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metascheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/localapi/collection"
)

// options are a request's, checked as the API server checks them.
type options struct {
	internalversion.ListOptions
	// version is ResourceVersion as a number; 0 also when it is unset.
	version uint64
	// from is where a continued list goes on.
	from *continuation
}

// continuation is a place in a list at a version.
type continuation struct {
	Version   uint64 `json:"v"`
	Namespace string `json:"ns,omitempty"`
	Name      string `json:"n"`
}

func (c continuation) key() collection.Key {
	return collection.Key{Namespace: c.Namespace, Name: c.Name}
}

func (c continuation) String() string {
	data, _ := json.Marshal(c) // cannot fail: numbers and strings
	return base64.RawURLEncoding.EncodeToString(data)
}

func parseOptions(query url.Values, watch bool) (options, error) {
	var o options
	if err := metascheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &o.ListOptions); err != nil {
		return o, apierrors.NewBadRequest(err.Error())
	}
	o.Watch = watch
	if errs := validation.ValidateListOptions(&o.ListOptions, true); len(errs) > 0 {
		return o, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	if o.ResourceVersion != "" {
		var err error
		if o.version, err = strconv.ParseUint(o.ResourceVersion, 10, 64); err != nil {
			return o, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: not a number", o.ResourceVersion))
		}
	}
	if o.Continue != "" && !watch {
		data, err := base64.RawURLEncoding.DecodeString(o.Continue)
		o.from = &continuation{}
		if err != nil || json.Unmarshal(data, o.from) != nil || o.from.Version == 0 || o.from.Name == "" {
			// One of the API server's, from before the answers came from here.
			return o, expired("the continue token was not issued by this node; list again from the start")
		}
		if o.version != 0 {
			return o, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
	}
	return o, nil
}
