package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func ms(values ...float64) []*float64 {
	var pointers []*float64
	for _, v := range values {
		if v < 0 {
			pointers = append(pointers, nil)
			continue
		}
		pointers = append(pointers, &v)
	}
	return pointers
}

func TestSummarize(t *testing.T) {
	const never = -1
	for name, tc := range map[string]struct {
		values []*float64
		want   []*float64 // least, median, most
	}{
		"an odd number has a middle":                  {ms(30, 10, 20), ms(10, 20, 30)},
		"an even number takes the lower of the two":   {ms(40, 10, 30, 20), ms(10, 20, 40)},
		"never is later than anything":                {ms(never, 10, 20), ms(10, 20, never)},
		"mostly never has no median":                  {ms(never, never, 10), ms(10, never, never)},
		"one run is all three":                        {ms(7), ms(7, 7, 7)},
		"no runs, as when the bench broke, are never": {nil, ms(never, never, never)},
	} {
		t.Run(name, func(t *testing.T) {
			s := summarize(tc.values)
			if diff := cmp.Diff(tc.want, []*float64{s.least, s.median, s.most}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTableHasALineForEachCaseThatRan(t *testing.T) {
	fast, slow, served := int64(2000), int64(12345), 2000.0
	got := table([]record{
		{Case: "floor", Pods: 10, Ready: 10, FirstReady: &fast, LastReady: &fast, BootToLast: &fast, WAN: "up", Extra: map[string]*float64{lastServing: &served}},
		{Case: "native-online", Pods: 10, Ready: 10, FirstReady: &fast, LastReady: &slow, BootToLast: &slow, WAN: "up", Extra: map[string]*float64{lastServing: &served}},
		{Case: "native-online", Pods: 10, Ready: 9, WAN: "up", FirstReady: &fast},
	})
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != 3 {
		t.Fatalf("want a head and two lines:\n%s", got)
	}
	if want := "native-online up 2 19/20 2.0 (2.0-2.0) 12.3 (12.3-never) 12.3 (12.3-never) 2.0 (2.0-never)"; strings.Join(strings.Fields(lines[1]), " ") != want {
		t.Errorf("got  %q\nwant %q", strings.Join(strings.Fields(lines[1]), " "), want)
	}
}

func TestTableShowsWhatACaseMeasuresBeside(t *testing.T) {
	slow, fast := 0.25, 0.125
	got := table([]record{
		{Case: "passthrough", WAN: "up", Pods: 110, Ready: 110, Extra: map[string]*float64{addedP50: &slow}},
		{Case: "passthrough", WAN: "up", Pods: 110, Ready: 110, Extra: map[string]*float64{addedP50: &fast}},
	})
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != 3 || strings.Contains(got, "kubelet to last") {
		t.Fatalf("want a head and a line for each figure, and no times of a node:\n%s", got)
	}
	if want := "passthrough up 2 added_ms_p50 0.125 (0.125-0.25)"; strings.Join(strings.Fields(lines[1]), " ") != want {
		t.Errorf("got  %q\nwant %q", strings.Join(strings.Fields(lines[1]), " "), want)
	}
}

func TestWays(t *testing.T) {
	c, err := parse([]string{"-wan", "linkdown,blackhole"})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		bench benchCase
		want  string
	}{
		"a case with the API server in reach runs once":   {rekindleOnline, "up"},
		"one that is cut off runs in every way":           {rekindleOffline, "linkdown blackhole"},
		"one for which one way is enough takes the first": {rekindleAsWritten, "linkdown"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(c.waysOf(tc.bench), " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestDisksAreSharedByCasesThatFindTheSame(t *testing.T) {
	for name, tc := range map[string]struct {
		bench benchCase
		want  string
	}{
		"plain nodes":                      {nativeOnline, savedDisk},
		"nodes with the agent":             {rekindleOnline, installedDisk},
		"a policy makes a disk of its own": {ordered, "installed-ordered"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.bench.disk(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		args    []string
		wantErr string
	}{
		"nothing: the cases of now":     {nil, ""},
		"one case":                      {[]string{"-cases", "floor", "-runs", "1"}, ""},
		"a case that does not exist":    {[]string{"-cases", "floor,warp"}, `no case "warp"; there are native-online, native-offline, floor`},
		"no runs":                       {[]string{"-runs", "0"}, "-runs 0"},
		"more pods than a node may run": {[]string{"-pods", "111"}, "-pods 111"},
		"a WAN mode that is none":       {[]string{"-wan", "linkdown,up"}, `-wan "up"`},
		"all WAN modes":                 {[]string{"-wan", "blackhole,refused,linkdown,noroute"}, ""},
		"fewer cuts than there must be": {[]string{"-cuts", "1"}, "-cuts 1"},
		"a kubelet that is none":        {[]string{"-kubelet", "v1"}, `-kubelet "v1"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.args)
			if tc.wantErr == "" && err != nil || tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr)) {
				t.Errorf("error = %v, want %q", err, tc.wantErr)
			}
		})
	}
}
