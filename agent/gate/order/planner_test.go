package order

import (
	"testing"
	"time"

	"rekindle.edge/api/v1alpha1"
)

// TestPlanner tells of starts, a step at a time.
func TestPlanner(t *testing.T) {
	const ready, timedOut, early = v1alpha1.StageReady, v1alpha1.StageTimedOut, v1alpha1.StageEarly
	stories := map[string]func(t *testing.T){
		"a stage opens once each pod of the one before is Ready and that has settled": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			a, b, c := p.add("a", "one"), p.add("b", "one"), p.add("c", "")
			p.call(c)
			p.makes(p.call(a))
			p.makes(p.call(b))
			p.at(1000)
			p.wells(a)
			p.starts(b)
			p.at(3000)
			p.wells(b)
			p.at(4000)
			p.at(4999)
			p.at(5000, "c")
			p.stages(opensAt("Critical", 1000, ready), opensAt("one", 1000, ready), opensAt("Rest", 5000, ""))
		},
		"a stage that waits for Started opens the next one when the containers run": func(t *testing.T) {
			p := newPlay(t, stage("one", started))
			a, b := p.add("a", "one"), p.add("b", "")
			p.call(b)
			p.makes(p.call(a))
			p.at(1000)
			p.starts(a)
			p.at(1001, "b")
		},
		"what was Ready before the boot is not Ready in it": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			p.add("a", "one")
			p.call(p.add("b", ""))
			p.at(1000)
			p.at(50_000)
		},
		"one container of the boot before is enough not to be Ready": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			a := p.wells(p.add("a", "one"))
			p.change(a, func(pod *pod) { pod.containers = append(pod.containers, "old-sidecar") })
			p.call(p.add("b", ""))
			p.at(1000)
			p.at(3000)
		},
		"a pod that is Ready for less than the settle time begins it anew": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			a := p.add("a", "one")
			p.call(p.add("b", ""))
			a = p.wells(a)
			p.at(1000)
			p.change(a, func(pod *pod) { pod.ready = false })
			p.at(1900)
			p.change(a, func(pod *pod) { pod.ready = true })
			p.at(2100)
			p.at(3100, "b")
		},
		"Ready waits until the endpoints that lead to the pod are served as they are now": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			a := p.wells(p.add("a", "one"))
			b := p.call(p.add("b", ""))
			slice := name{"shop", "a-1"}
			for _, e := range []endpoint{
				{pod: a.uid, addresses: []string{"10.0.0.1"}}, {pod: a.uid, addresses: []string{"10.0.0.9"}, ready: true},
			} {
				p.slices[slice] = []endpoint{{pod: "another"}, e}
				p.at(1000)
				p.at(9000)
			}
			p.slices[slice] = []endpoint{{pod: a.uid, addresses: []string{"10.0.0.1"}, ready: true}}
			p.at(10_000)
			p.at(11_000, b.pod.name.name)
		},
		"a stage that times out opens the next one, and the record says who held it": func(t *testing.T) {
			p := newPlay(t, stage("one", timeout(10)), stage("two"))
			p.add("well", "one", priority(5))
			bad := p.add("bad", "one")
			p.wells(p.pods[name{"shop", "well"}])
			p.starts(bad)
			p.call(p.add("b", "two"))
			p.at(1000)
			p.at(10_999)
			p.at(11_000, "b")
			p.stages(opensAt("Critical", 1000, ready), opensAt("one", 1000, timedOut, "shop/bad"), opensAt("two", 11_000, ""))
		},
		"a stage's time counts from when it was opened": func(t *testing.T) {
			p := newPlay(t, stage("one", timeout(10)), stage("two", timeout(10)))
			p.add("a", "one")
			p.add("b", "two")
			p.call(p.add("c", ""))
			p.at(1000)
			p.at(11_000)
			p.at(20_999)
			p.at(21_000, "c")
		},
		"a pod that will never come is not waited for": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			a := p.add("a", "one")
			p.add("done", "one", over)
			p.add("leaving", "one", deleting)
			p.call(p.add("b", ""))
			p.at(1000)
			delete(p.pods, a.name)
			p.at(2000, "b")
		},
		"a pod that kubelet rejects in this boot is not waited for": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			a := p.add("a", "one")
			p.call(p.add("b", ""))
			p.at(1000)
			p.change(a, over)
			p.at(1500, "b")
		},
		"critical and static pods come before the stages": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			cni, manifest := p.add("kube-system/cni", "", critical), p.add("kube-system/proxy", "", static)
			p.call(p.add("a", "one"))
			p.call(cni)
			p.call(manifest)
			p.at(1000, "proxy", "cni")
			p.wells(cni)
			p.wells(manifest)
			p.at(2000)
			p.at(3000, "a")
		},
		"a critical pod that a stage names comes with its stage": func(t *testing.T) {
			p := newPlay(t, stage("one"), stage("two", selects(v1alpha1.PodSelector{PriorityClassNames: []string{nodeCritical}})))
			p.call(p.add("cni", "", critical))
			p.call(p.add("a", "one"))
			p.at(1000, "a")
		},
		"a critical pod that was broken before the boot holds nobody": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			p.wellBefore = map[string]bool{}
			p.add("kube-system/cni", "", critical)
			p.call(p.add("a", "one"))
			p.at(1000, "a")
		},
		"a static pod is started whatever its mirror says": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			p.wellBefore = map[string]bool{"kube-system/proxy": true}
			p.add("kube-system/proxy", "", static, over)
			p.call(p.add("a", "one"))
			p.at(1000)
		},
		"critical pods hold the stages for a while, and all is over in the stages' time": func(t *testing.T) {
			p := newPlay(t, stage("one", timeout(40)))
			p.add("kube-system/cni", "", critical)
			p.add("a", "one")
			p.call(p.add("b", ""))
			p.at(1000)
			p.at(31_000)
			p.stages(opensAt("Critical", 1000, timedOut, "kube-system/cni"), opensAt("one", 31_000, ""))
			p.at(40_999)
			p.at(41_000, "b")
		},
		"maxParallel bounds the sandboxes that are made at once in a stage": func(t *testing.T) {
			p := newPlay(t, stage("one", oneAtOnce))
			a, b := p.call(p.add("a", "one")), p.call(p.add("b", "one"))
			p.at(1000, "a")
			p.at(1100)
			p.makes(a)
			p.at(1200, "b")
			p.makes(b)
		},
		"a sandbox that takes long gives its turn to others": func(t *testing.T) {
			p := newPlay(t, stage("one", oneAtOnce))
			p.call(p.add("a", "one"))
			p.call(p.add("b", "one"))
			p.at(1000, "a")
			p.at(5999)
			p.at(6000, "b")
		},
		"without stages the most important pods start first, as many at once as there may be": func(t *testing.T) {
			p := newPlay(t)
			for _, pod := range []*pod{
				p.add("young", ""), p.add("younger", ""), p.add("high", "", priority(100)), p.add("cluster", "", func(p *pod) { p.priorityClass = clusterCritical }),
				p.add("node", "", critical), p.add("manifest", "", static),
			} {
				p.call(pod)
			}
			want := []string{"manifest", "node", "cluster", "high", "young", "younger"}
			for i := 0; i < len(want); i += 2 {
				for _, c := range p.at(1000+i, want[i], want[i+1]).release {
					p.makes(c)
				}
			}
			p.stages(opensAt("Rest", 1000, ""))
		},
		"more at once once as many run as started first": func(t *testing.T) {
			p := newPlay(t)
			p.groups[0].parallel, p.groups[0].atFirst = 4, 2
			var calls []*call
			for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
				calls = append(calls, p.call(p.add(name, "")))
			}
			p.at(1000, "a", "b")
			p.makes(calls[0])
			p.at(1100, "c")
			p.running["new-a"] = true
			p.at(1200)
			p.running["new-b"] = true
			p.at(1300, "d", "e")
		},
		"the first calls wait a moment for those of more important pods": func(t *testing.T) {
			p := newPlay(t)
			first, second := p.add("first", ""), p.add("second", "")
			third := p.add("third", "")
			p.call(third)
			p.at(1000)
			p.call(first)
			p.at(1100, "first")
			p.at(1249)
			p.at(1250, "third")
			p.call(second)
			p.at(1260)
		},
		"a more important pod that asks whether there is a network has its turn": func(t *testing.T) {
			p := newPlay(t, stage("one", oneAtOnce))
			first, second := p.add("first", "one"), p.add("second", "one")
			asking := p.call(first, func(c *call) { c.phase, c.since = offline, time.Second })
			p.call(second)
			p.at(1000)
			asking.phase = waiting
			p.at(1010, "first")
		},
		"a pod that is held for its network takes no turn": func(t *testing.T) {
			p := newPlay(t, stage("one", oneAtOnce))
			p.call(p.add("a", "one"), func(c *call) { c.phase = offline })
			p.call(p.add("b", "one"))
			p.at(1000, "b")
		},
		"while pods get no network one at a time tries, and those on the node's network go on": func(t *testing.T) {
			p := newPlay(t)
			a, b := p.call(p.add("a", "")), p.call(p.add("b", ""))
			host := p.call(p.add("host", "", onNode))
			p.noNetwork = true
			p.at(1000, "a", "host")
			p.makes(host)
			p.at(2000)
			a.phase = offline
			p.at(2100, "b")
			b.phase = offline
			a.phase = waiting
			p.at(2599)
			p.at(2600, "a")
			p.noNetwork = false
			b.phase = waiting
			p.at(2700, "b")
		},
		"pods on the node's network are ordered too": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			p.add("a", "one")
			p.call(p.add("b", "", onNode))
			p.at(1000)
		},
		"a held pod that is deleted is let go": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			p.add("a", "one")
			b := p.add("b", "")
			p.call(b)
			p.at(1000)
			delete(p.pods, b.name)
			p.refuses(1100, map[string]string{"b": "is deleted"})
		},
		"a held pod whose deletion begins, or that is over, is let go": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			p.add("a", "one")
			b, c := p.add("b", ""), p.add("c", "")
			p.call(b)
			p.call(c)
			p.at(1000)
			p.change(b, deleting)
			p.change(c, over)
			p.refuses(1100, map[string]string{"b": "is being deleted", "c": "is over"})
		},
		"a held pod that was replaced is let go": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			p.add("a", "one")
			b := p.add("b", "")
			p.call(b)
			p.at(1000)
			p.change(b, func(pod *pod) { pod.uid = "another" })
			p.refuses(1100, map[string]string{"b": "was replaced"})
		},
		"a held static pod whose mirror goes is let go": func(t *testing.T) {
			p := newPlay(t, stage("one"), stage("two", selects(v1alpha1.PodSelector{Source: v1alpha1.PodSourceStatic})))
			p.add("a", "one")
			b := p.add("b", "", static)
			p.call(b, func(c *call) { c.pod.uid = "hash" })
			p.at(1000)
			delete(p.pods, b.name)
			p.refuses(1100, map[string]string{"b": "mirror"})
		},
		"a held pod whose activeDeadlineSeconds are over is let go": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			p.zero = epoch
			p.add("a", "one")
			p.call(p.add("b", "", func(pod *pod) { pod.ends = epoch.Add(10 * time.Second) }))
			p.call(p.add("c", "", func(pod *pod) { pod.ends = epoch.Add(time.Hour) }))
			p.at(1000)
			if d := p.at(9000); d.wake != 10*time.Second {
				t.Errorf("it looks again at %s", d.wake)
			}
			p.refuses(10_000, map[string]string{"b": "activeDeadlineSeconds are over"})
		},
		"a pod that kubelet has ended itself is let go": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			p.add("a", "one")
			c := p.call(p.add("b", ""))
			p.at(1000)
			c.revoked = "kubelet has evicted it"
			p.refuses(1100, map[string]string{"b": "evicted"})
		},
		"a call whose deadline nears is answered with who holds it, and goes on waiting when it comes again": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			p.add("a", "one")
			b := p.add("b", "")
			p.call(b, func(c *call) { c.deadline = 30 * time.Second })
			p.at(1000)
			p.refuses(30_000, map[string]string{"b": "stage one, which waits for pod shop/a"})
			p.call(b)
			p.at(31_000)
		},
		"a sandbox in the making is left alone": func(t *testing.T) {
			p := newPlay(t)
			a := p.add("a", "")
			p.call(a, func(c *call) { c.deadline = 3 * time.Second })
			p.at(1000, "a")
			p.change(a, deleting)
			p.refuses(4000, nil)
		},
		"a stage without progress opens early for what its pods may need to get a network": func(t *testing.T) {
			p := newPlay(t, stage("one"), stage("two"))
			p.add("a", "one")
			p.add("b", "two")
			p.call(p.add("kube-system/cni", "", onNode))
			p.call(p.add("c", ""))
			p.at(1000)
			p.at(20_999)
			p.at(21_000, "cni", "c")
			p.stages(opensAt("Critical", 1000, ready), opensAt("one", 1000, early, "shop/a"), opensAt("two", 21_000, early, "shop/b"), opensAt("Rest", 21_000, ""))
		},
		"a stage with progress does not open early": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			a := p.add("a", "one")
			p.call(p.add("kube-system/cni", "", onNode))
			p.at(1000)
			call := p.call(a)
			p.at(15_000, "a")
			p.makes(call)
			p.at(30_000)
			p.starts(a)
			p.at(45_000)
			p.at(60_999)
		},
		"a pod that runs and is not Ready needs no network": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			p.starts(p.add("a", "one"))
			p.call(p.add("kube-system/agent", "", onNode))
			p.at(1000)
			p.at(59_000)
		},
		"a pod that runs may need a service that it names, or the system's": func(t *testing.T) {
			for _, s := range []service{{name{"shop", "db"}, map[string]string{"stage": "late"}}, {name{"kube-system", "dns"}, map[string]string{"stage": "late"}}} {
				p := newPlay(t, stage("one"))
				a := p.starts(p.add("a", "one"))
				p.change(a, func(pod *pod) {
					pod.raw = []byte(`{"spec":{"containers":[{"env":[{"name":"DB","value":"tcp://db:5432"}]}]}}`)
				})
				p.services[s.name] = s
				p.call(p.add(s.namespace+"/db-0", "late"))
				p.at(1000)
				p.at(21_000, "db-0")
			}
		},
		"a pod that is new in this boot starts as the rest does": func(t *testing.T) {
			p := newPlay(t, stage("one"))
			a := p.add("a", "one")
			p.at(1000)
			p.call(a)
			p.at(2000, "a")
			p.call(p.add("new", ""))
			p.at(2100)
			p.wells(a)
			p.at(2200)
			p.at(3200, "new")
		},
		"the start is over when every pod has started": func(t *testing.T) {
			p := newPlay(t)
			a, b := p.add("a", ""), p.add("b", "")
			p.add("done", "", over)
			call := p.call(a)
			p.at(1000, "a")
			p.makes(call)
			p.at(1100)
			if p.state.Over {
				t.Error("it is over before b")
			}
			p.starts(b)
			if d := p.at(1200); !p.state.Over || !d.changed {
				t.Error("it is not over")
			}
		},
		"the start is over when nobody has asked for a while": func(t *testing.T) {
			p := newPlay(t)
			call := p.call(p.add("a", ""))
			p.add("stuck", "")
			p.at(1000, "a")
			p.makes(call)
			p.at(29_999)
			if p.at(31_000); !p.state.Over {
				t.Error("it is not over")
			}
		},
		"no time runs before the first call": func(t *testing.T) {
			p := newPlay(t, stage("one", timeout(10)))
			p.add("a", "one")
			p.at(1000)
			p.at(90_000)
			p.call(p.add("b", ""))
			p.at(99_000)
			p.at(108_999)
			p.at(109_000, "b")
		},
	}
	for name, story := range stories {
		t.Run(name, story)
	}
}

func TestHolds(t *testing.T) {
	cases := map[string]struct {
		change func(*play)
		call   call
		want   bool
	}{
		"a pod of the list":                         {call: call{pod: &pod{uid: "uid-a"}}, want: true},
		"a static pod that nobody has mirrored yet": {call: call{pod: &pod{uid: "hash", static: true}}, want: true},
		"a pod that was on the list":                {change: func(p *play) { p.list(nil) }, call: call{pod: &pod{uid: "uid-a"}}, want: true},
		"an unknown pod":                            {call: call{pod: &pod{uid: "other"}}},
		"before there is a list":                    {change: func(p *play) { p.listed = false }, call: call{pod: &pod{uid: "hash", static: true}}},
		"after the start":                           {change: func(p *play) { p.state.Over = true }, call: call{pod: &pod{uid: "uid-a"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			p.add("a", "")
			if tc.change != nil {
				tc.change(p)
			}
			if got := p.holds(&tc.call); got != tc.want {
				t.Errorf("holds: %v", got)
			}
		})
	}
}

func TestARestartedAgentGoesOn(t *testing.T) {
	p := newPlay(t, stage("one", timeout(10)), stage("two", timeout(10)))
	p.add("a", "one")
	p.add("c", "two")
	p.call(p.add("b", ""))
	p.at(1000)
	p.at(11_000)
	dir := t.TempDir()
	if err := p.state.save(dir); err != nil {
		t.Fatal(err)
	}
	again := func(t *testing.T, stages ...v1alpha1.Stage) *play {
		t.Helper()
		kept, err := loadState(dir, "boot")
		if err != nil {
			t.Fatal(err)
		}
		q := newPlay(t, stages...)
		q.planner = newPlanner(q.groups, q.total, kept, q.running, 12*time.Second)
		q.add("b", "")
		q.add("c", "two")
		q.listed = true
		return q
	}
	t.Run("with the stages as they stood", func(t *testing.T) {
		q := again(t, stage("one", timeout(10)), stage("two", timeout(10)))
		q.call(q.pods[name{"shop", "b"}])
		q.at(13_000)
		q.at(20_999)
		q.at(21_000, "b")
	})
	t.Run("within the whole time, if the stages are others", func(t *testing.T) {
		q := again(t, stage("three", timeout(5)), stage("two", timeout(25)))
		q.call(q.pods[name{"shop", "b"}])
		q.at(13_000)
		q.at(30_999)
		q.at(31_000, "b")
	})
	t.Run("not in another boot", func(t *testing.T) {
		kept, err := loadState(dir, "another")
		if err != nil || len(kept.Opened) > 0 || kept.Began != nil {
			t.Errorf("kept %+v, error %v", kept, err)
		}
	})
}
