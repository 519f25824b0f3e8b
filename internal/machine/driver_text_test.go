package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/testutil/script"
)

// describe writes what a notice tells as scripts have it.
func describe(n Notice) string {
	name := n.Name
	switch n.Kind {
	case NoticeUpdated:
		return fmt.Sprintf("updated %s %s version=%s%s%s", name, strconv.Quote(n.Value.(string)), n.Version, beside(n.Attributes), script.Stale(n.Stale))
	case NoticeDoesNotExist:
		return fmt.Sprintf("does-not-exist %s %s%s", name, n.Reason, script.Stale(n.Stale))
	case NoticeFailed:
		return fmt.Sprintf("failed %s %s", name, fault(n.Fault))
	case NoticeAmbient:
		if n.Fault == nil {
			return fmt.Sprintf("ambient-error %s cleared", name)
		}
		return fmt.Sprintf("ambient-error %s %s", name, fault(n.Fault))
	case NoticeSynced:
		return "synced " + name + script.Stale(n.Stale)
	}
	return fmt.Sprintf("notice %d", n.Kind)
}

// beside writes what stands beside a value.
func beside(a *wire.Attributes) string {
	if a == nil {
		return ""
	}
	var m *corev3.Metadata
	if len(a.Metadata) > 0 {
		m = &corev3.Metadata{}
		if err := proto.Unmarshal(a.Metadata, m); err != nil {
			return " " + err.Error()
		}
	}
	var aliases []string
	for _, name := range a.Aliases {
		aliases = append(aliases, string(name))
	}
	return script.Attributes(aliases, a.DoNotCache, m)
}

func fault(f *Fault) string {
	if f.Kind == FaultRejected || f.Kind == FaultData {
		return fmt.Sprintf("%s: %s", f.Kind, f.Err)
	}
	return f.Kind.String()
}

func (d *driver) dump() {
	rs := dump(d.m)
	slices.SortStableFunc(rs, func(a, b Resource) int {
		return cmp.Or(cmp.Compare(a.TypeURL, b.TypeURL), cmp.Compare(a.Name, b.Name))
	})
	for _, r := range rs {
		line := fmt.Sprintf("%s %s %s", script.Short(r.TypeURL), r.Name, r.Status)
		if r.Raw != nil {
			line += " version=" + r.Version + beside(r.Attributes)
		}
		line += script.Stale(r.Stale)
		if r.Fault != nil {
			line += " " + fault(r.Fault)
		}
		d.print("= %s", line)
	}
}

// dump is what the machine lists, page by page.
func dump(m *Machine) (rs []Resource) {
	var at Listing
	for done := false; !done; {
		var keys []Key
		keys, done = m.List(&at, nil, 2)
		rs = m.Look(rs, keys)
	}
	return rs
}
