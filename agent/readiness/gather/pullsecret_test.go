package gather

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestAPullSecretIsKnownByItsContent(t *testing.T) {
	// SHA-256 of {"username":"robot","password":"let me in"}.
	const hash = "2d7f001923b7d6ab9da4b09cd1caa7ce81dbce8e32038ef8414ed91928e90042"
	cases := map[string]struct {
		kind corev1.SecretType
		data map[string][]byte
		hash string
		want bool
	}{
		"user and password":      {kind: corev1.SecretTypeDockerConfigJson, data: map[string][]byte{".dockerconfigjson": []byte(`{"auths":{"r":{"username":"robot","password":"let me in"}}}`)}, hash: hash, want: true},
		"both in one":            {kind: corev1.SecretTypeDockerConfigJson, data: map[string][]byte{".dockerconfigjson": []byte(`{"auths":{"other":{},"r":{"auth":"cm9ib3Q6bGV0IG1lIGlu"}}}`)}, hash: hash, want: true},
		"the old kind":           {kind: corev1.SecretTypeDockercfg, data: map[string][]byte{".dockercfg": []byte(`{"r":{"username":"robot","password":"let me in"}}`)}, hash: hash, want: true},
		"another password":       {kind: corev1.SecretTypeDockerConfigJson, data: map[string][]byte{".dockerconfigjson": []byte(`{"auths":{"r":{"username":"robot","password":"other"}}}`)}, hash: hash},
		"another kind of secret": {kind: corev1.SecretTypeOpaque, data: map[string][]byte{".dockerconfigjson": []byte(`{"auths":{"r":{"username":"robot","password":"let me in"}}}`)}, hash: hash},
		"damaged":                {kind: corev1.SecretTypeDockerConfigJson, data: map[string][]byte{".dockerconfigjson": []byte(`{`)}, hash: hash},
		"nothing is remembered":  {kind: corev1.SecretTypeDockerConfigJson, data: map[string][]byte{".dockerconfigjson": []byte(`{"auths":{"r":{}}}`)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(corev1.Secret{Type: tc.kind, Data: tc.data})
			if err != nil {
				t.Fatal(err)
			}
			if got := holds(raw, tc.hash); got != tc.want {
				t.Errorf("holds it: %t", got)
			}
		})
	}
}
