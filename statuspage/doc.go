// Package statuspage shows what a client of package client knows, to people and as JSON: its servers
// and streams, its types and resources, its watches, its views with what they wait for, and the
// last hundred exchanges with its servers.
//
//	var exchanges statuspage.Recorder
//	c, err := client.New(client.Config{Bootstrap: boot, Trace: exchanges.Trace(nil)})
//	…
//	http.Handle("/debug/xds/", statuspage.New(c, statuspage.Config{Recorder: &exchanges}))
//
// The pages are "" (the overview), "resources", "resource", "watches", "views" and "exchanges"
// below the path at which the handler is mounted, which ends in a slash. Each is HTML, or JSON with
// ?format=json or a request that accepts only JSON. They need no JavaScript; with it they
// update themselves. [New] lists the parameters. Beside them "config_dump" is Envoy's, of package
// configdump.
//
// # Who may see it
//
// Nothing is served unless the program mounts the handler. The handler only reads, and answers GET and
// HEAD. Contents of resources are shown without what is secret (package resource/resourcejson), and
// errors quote no content. But names, addresses and the rest of the configuration are for operators
// alone: serve the page on a listener of its own that is bound to the loopback interface, or put
// authentication in front of it. Nothing of it may stand on a port that serves requests of users.
//
// On a loopback address the handler answers only requests whose Host is localhost, an IP address or one of
// [Config.Hosts]: else a web page that somebody visits on the same machine could have its own name
// resolve to the loopback address, and read what is here.
package statuspage
