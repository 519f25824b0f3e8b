package main

import (
	"errors"
	"fmt"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/view"
)

// everyListener is the ROOT that stands for all listeners.
const everyListener = "all"

var rootTypes = map[string]view.RootType{
	lds.Type.TypeURL(): view.RootListener, rds.Type.TypeURL(): view.RootRoutes, cds.Type.TypeURL(): view.RootCluster,
}

// rootRef is the resource that a view begins with.
func rootRef(root view.Root) report.Ref {
	for url, typ := range rootTypes {
		if typ == root.Type {
			return report.Ref{Type: url, Name: root.Name}
		}
	}
	return report.Ref{}
}

// parseRoot reads ROOT; all says that it is every listener.
func parseRoot(text, host string) (root view.Root, all bool, err error) {
	if text == everyListener {
		if host != "" {
			err = errors.New("--host chooses a virtual host of one root, and not of all listeners")
		}
		return view.Root{}, true, err
	}
	sub, err := subscription.Parse(text)
	switch typ := rootTypes[sub.TypeURL]; {
	case err != nil:
		return root, false, err
	case typ == 0, sub.Collection:
		return root, false, fmt.Errorf("root %q: want lds:NAME, rds:NAME, cds:NAME, the structured name of one of these, or %s", text, everyListener)
	case typ == view.RootCluster && host != "":
		return root, false, errors.New("--host chooses a virtual host, which a cluster has not")
	default:
		return view.Root{Type: typ, Name: sub.Asked(), Host: host}, false, nil
	}
}
