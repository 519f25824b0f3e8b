package client_test

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/xdstp"
)

// A map that is keyed by what the program asked for finds each event.
// spec: U-11
func TestAsked(t *testing.T) {
	long := "xdstp:///" + clusterName + "/x?b=2&a=1"
	other := "xdstp:///" + clusterName + "/x?a=1&b=2"
	canonical := "xdstp:///" + clusterName + "/x?a=1&b=2&xds.resource.vip=10.0.0.1"
	inBubble(t, func(t *testing.T, r *rig) {
		var mu sync.Mutex
		var heard []string
		hear := func(who string, ev client.Event[any]) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, fmt.Sprintf("%s %v %v", who, ev.Name == canonical, ev.Asked))
		}
		for _, name := range []string{long, other} {
			_, err := r.c.Watch(context.Background(), cds.Type, name, func(ev client.Event[any]) { hear("watch", ev) })
			must(t, err)
		}
		set, err := r.c.NewSet(context.Background(), cds.Type, func(b client.Batch[any]) {
			for _, ev := range b.Events {
				hear("set", ev)
			}
		})
		must(t, err)
		must(t, set.Add(long))
		glob := "xdstp:///" + clusterName + "/*?b=2&a=1"
		_, err = r.c.WatchAll(context.Background(), cds.Type, glob, func(b client.Batch[any]) {
			for _, ev := range b.Events {
				hear("glob", ev)
			}
		})
		must(t, err)
		st := r.accept()
		time.Sleep(10 * time.Millisecond)
		r.clusters(st, "1", "n1", canonical)
		ev, err := r.c.Get(context.Background(), cds.Type, long)
		must(t, err)
		hear("get", ev)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(heard)
		same(t, "heard", heard, []string{
			"get true " + long, "glob false " + glob, "glob true " + canonical, "set true " + long,
			"watch true " + other, "watch true " + long,
		})
	}, func(c *client.Config) {
		c.Context = func(string) xdstp.Context {
			return xdstp.Context{Attributes: []xdstp.Param{xdstp.VIP(netip.MustParseAddr("10.0.0.1"))}}
		}
		c.Bootstrap.Authorities = map[string]bootstrap.Authority{"": {}}
	})
}

// A typed event has all that an untyped one has.
func TestTypedHasEverything(t *testing.T) {
	var ev client.Event[any]
	v := reflect.ValueOf(&ev).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Uint8:
			f.SetUint(1)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Slice:
			f.SetBytes([]byte("x"))
		}
	}
	ev.Value, ev.Err, ev.Features = "x", context.Canceled, bootstrap.Features{TrustedXDSServer: true}
	typed := reflect.ValueOf(client.Typed[string](ev))
	for i := range typed.NumField() {
		if typed.Field(i).IsZero() {
			t.Errorf("%s is lost", typed.Type().Field(i).Name)
		}
	}
}

// Who has two values of a type reads what to do.
// spec: U-13
func TestTypeConflictHint(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		_, err := r.c.Watch(context.Background(), resource.With(cds.Type, func(*clusterv3.Cluster) error { return nil }), "a", func(client.Event[any]) {})
		if !strings.Contains(fmt.Sprint(err), "share one variable") {
			t.Errorf("the error is %v", err)
		}
	})
}

// The dump says what was refused and when, why nothing is there, and what is kept, and gives
// values.
// spec: U-17
func TestDumpSaysWhy(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for _, name := range []string{"good", "bad", "kept", "never", "gone"} {
			r.watch(name)
		}
		st := r.accept()
		r.clusters(st, "1", "n1", "good", "kept", "bad")
		refused := invalid("bad")
		r.send(st, testutil.SotW(cds.Type.TypeURL(), "2", "n2", cluster("good", "1"), refused))
		synctest.Wait()
		states := map[string]client.State{}
		for _, s := range r.c.Dump() {
			states[s.Name] = s
		}
		if v, err := states["good"].Value(); err != nil || v.(*clusterv3.Cluster).GetName() != "good" {
			t.Errorf("the value is %v, %v", v, err)
		}
		if v, err := states["never"].Value(); v != nil || err != nil {
			t.Errorf("the value of nothing is %v, %v", v, err)
		}
		bad := states["bad"].Refused
		if bad == nil || bad.Version != "2" || bad.Time.IsZero() || !strings.Contains(string(bad.Raw), "bad") {
			t.Errorf("refused is %+v", bad)
		}
		if k := states["kept"]; !k.Kept || k.Reason != client.ReasonAbsent || states["good"].Kept || states["good"].Refused != nil {
			t.Errorf("kept is %+v", k)
		}
	}, func(c *client.Config) { c.DeletionPolicy = client.DeletionKeep })
}
