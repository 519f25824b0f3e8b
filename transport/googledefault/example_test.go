package googledefault_test

import (
	"fmt"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/transport/googledefault"
)

// A program that reads bootstraps of Traffic Director adds the credential to those that it knows.
// It is made when a client first connects.
func Example() {
	boot, err := bootstrap.Parse("bootstrap.json", []byte(`{
		"xds_servers": [{
			"server_uri": "trafficdirector.googleapis.com:443",
			"channel_creds": [{"type": "google_default"}],
			"server_features": ["xds_v3"]
		}]
	}`), bootstrap.WithChannelCreds(googledefault.Type, googledefault.New))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(boot.Servers[0].URI, boot.Servers[0].ChannelCreds.Type)
	// Output: trafficdirector.googleapis.com:443 google_default
}
