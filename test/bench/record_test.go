package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFill(t *testing.T) {
	zero := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return zero.Add(time.Duration(seconds * float64(time.Second))) }
	pods := []string{"first", "a", "b"}
	for name, tc := range map[string]struct {
		seen     observed
		critical int
		want     string
	}{
		"first is the named pod and last the slowest": {
			observed{
				bootZero: zero, kubeletZero: at(1),
				ready:   map[string]time.Time{"first": at(6), "a": at(4), "b": at(9)},
				serving: map[string]time.Time{"first": at(3), "a": at(3.5), "b": at(3.25)},
			},
			0,
			`{"case":"c","run":1,"pods":3,"ready":3,"kubelet_to_first_ready_ms":5000,"kubelet_to_last_ready_ms":8000,"boot_to_last_ready_ms":9000,` +
				`"wan":"up","kubelet":"newest","ok":false,"extra":{"boot_to_kubelet_ms":1000,"last_serving_ms":2500}}`,
		},
		"the critical pods are as late as the slowest of them": {
			observed{
				bootZero: zero, kubeletZero: at(1),
				ready:   map[string]time.Time{"first": at(3), "a": at(4), "b": at(9)},
				serving: map[string]time.Time{"first": at(3), "a": at(3.5), "b": at(3.25)},
			},
			2,
			`{"case":"c","run":1,"pods":3,"ready":3,"kubelet_to_first_ready_ms":2000,"kubelet_to_last_ready_ms":8000,"boot_to_last_ready_ms":9000,` +
				`"wan":"up","kubelet":"newest","ok":false,"extra":{"boot_to_kubelet_ms":1000,"critical_last_ready_ms":3000,"last_serving_ms":2500}}`,
		},
		"a pod that is missing leaves what waits for it null": {
			observed{
				bootZero: zero, kubeletZero: at(1),
				ready:   map[string]time.Time{"first": at(6), "a": at(4), "stranger": at(5)},
				serving: map[string]time.Time{"first": at(3)},
			},
			0,
			`{"case":"c","run":1,"pods":3,"ready":2,"kubelet_to_first_ready_ms":5000,"kubelet_to_last_ready_ms":null,"boot_to_last_ready_ms":null,` +
				`"wan":"up","kubelet":"newest","ok":false,"extra":{"boot_to_kubelet_ms":1000,"last_serving_ms":null}}`,
		},
		"a kubelet that never started gives no zero": {
			observed{bootZero: zero},
			0,
			`{"case":"c","run":1,"pods":3,"ready":0,"kubelet_to_first_ready_ms":null,"kubelet_to_last_ready_ms":null,"boot_to_last_ready_ms":null,` +
				`"wan":"up","kubelet":"newest","ok":false,"extra":{"boot_to_kubelet_ms":null,"last_serving_ms":null}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := record{Case: "c", Run: 1, WAN: "up", Kubelet: "newest"}
			r.fill(pods, tc.critical, tc.seen)
			got, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	started := map[string]*float64{bootToKubelet: new(float64)}
	for name, tc := range map[string]struct {
		bench  benchCase
		record record
		want   bool
	}{
		"online, all ready and serving":      {nativeOnline, record{Ready: 10, serving: 10, Extra: started}, true},
		"online, one not ready":              {nativeOnline, record{Ready: 9, serving: 10, Extra: started}, false},
		"offline, none ready":                {nativeOffline, record{Extra: started}, true},
		"offline, one ready all the same":    {nativeOffline, record{Ready: 1, Extra: started}, false},
		"offline, one serves all the same":   {nativeOffline, record{serving: 1, Extra: started}, false},
		"offline, since kubelet never began": {nativeOffline, record{}, false},
		"the floor, one that never served":   {floor, record{Ready: 9, serving: 9, Extra: started}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tc.record.Pods = 10
			if err := tc.bench.check(tc.record); (err == nil) != tc.want {
				t.Errorf("check() = %v", err)
			}
		})
	}
}
