package sds_test

import (
	"context"
	"fmt"
	"log"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// A program looks a Secret up. Events and errors never print what is in it.
func Example() {
	server, err := testutil.NewCollectionServer()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	if err := server.Set(testutil.Wrapped("ticket-keys", "1", &tlsv3.Secret{Name: "ticket-keys", Type: &tlsv3.Secret_SessionTicketKeys{SessionTicketKeys: &tlsv3.TlsSessionTicketKeys{Keys: []*corev3.DataSource{{Specifier: &corev3.DataSource_InlineString{InlineString: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}}}}}})); err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: server.Bootstrap(true)})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	secret, err := watcher.Get(context.Background(), c, sds.Type, "ticket-keys")
	fmt.Println(len(secret.GetSessionTicketKeys().GetKeys()), err)
	// Output: 1 <nil>
}
