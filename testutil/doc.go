// Package testutil is the test kit of xdswatch: management servers to run a client against (one
// that does exactly what a test tells it, a real one, and one that serves structured names), and
// the certificates that they need. The tests of the module use it, and so may the tests of its
// users.
//
// # A test of a program
//
// A program that uses this library is tested with a real management server, the resources that the
// builders make, and the server's bootstrap. The builders make the common forms; the test sets other
// fields in the messages itself.
//
//	srv := testutil.StartManagementServer(t, testutil.ManagementConfig{})
//	srv.Set("1",
//		testutil.APIListener("shop", "routes"),
//		testutil.RouteConfig("routes", testutil.VirtualHost("*", testutil.Route("", "backend"))),
//		testutil.EDSCluster("backend"), testutil.Endpoints("backend", "10.0.0.1:80"))
//	c, err := client.New(client.Config{Bootstrap: srv.Bootstrap()})
//
// # The scripted server
//
// [NewServer] makes a management server in memory, [ListenServer] one on loopback TCP or a
// Unix socket. Both serve every discovery method, aggregated or of a single type, state of
// the world or delta, and do nothing by themselves. A test takes the streams as they come
// and plays the server's part:
//
//	st, err := srv.Accept(ctx)                 // the next stream
//	req, err := st.Next(ctx)                   // its next request
//	err = st.Send(testutil.SotW(url, "1", "n1", cluster))
//	st.End(status.Error(codes.Unavailable, "going away"))
//
// A hook makes the server answer by itself: see [OnRequest]. Faults are methods: broken or huge
// messages ([Stream.SendBytes]), a stalled reader ([Stream.StopReading]), refused or hanging
// dials ([Server.SetRefuse], [Server.SetHoldDial]), cut connections ([Server.DropConnections])
// and GOAWAY ([Server.GoAway]). For a silent server, let its script do nothing.
//
// A server in memory runs inside a testing/synctest bubble with exact fake time, and
// leaves no goroutine behind when it is closed.
//
// # The other servers
//
//   - [NewManagementServer] runs the server and the snapshot cache of go-control-plane, with everything
//     that this implementation does and does not do. A test can kill it and start it again.
//   - [NewCollectionServer] serves structured names, which go-control-plane's server does not: globs,
//     list collections, redirects and aliases. It is a [Store] behind a scripted server, and a Store
//     can be put behind any of them.
//   - [NewRESTServer] is polled over HTTP with JSON.
//
// A test says what a store serves, and waits for what the clients made of it:
//
//	srv.Set(testutil.Wrapped("xdstp://au/"+cluster+"/prod/a", "1", a))
//	srv.Redirect("xdstp://au/"+cluster+"/prod/b", "xdstp://au/"+cluster+"/shared/b")
//	srv.Settle(ctx)                            // all is sent and answered
//	names := srv.Subscribed(typeURL)           // what they subscribe to
//
// # What is around a client
//
//   - [NewTCPProxy] and [NewUnixProxy] stand between a client and a server on TCP, and cut, delay or
//     swallow what passes.
//   - [EncodeFile], [PlaceFile], [BeginFile] and [ConfigMap] write the files of a file source as programs
//     and Kubernetes do: moved into place, in place and half done, swapped by a link.
//   - [NewCA] makes certificates of any validity, expired ones included.
package testutil
