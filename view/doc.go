// Package view follows a configuration from a root, a listener, a route configuration or a
// cluster, through all that it names: routes, clusters, endpoints. It publishes each consistent
// state of the whole as an immutable [Snapshot].
//
//	v, err := view.New(ctx, c, view.Root{Type: view.RootListener, Name: "ingress"}, view.Config{})
//	defer v.Stop()
//	if err := v.Ready(ctx); err != nil { … }
//	cluster := v.Snapshot().Cluster("backend")
//
// docs/VIEW.md says what is published and when.
package view
