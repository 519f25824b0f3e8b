package statuspage_test

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/statuspage"
)

// A program mounts the handler where only operators come. Programs read it as JSON.
func Example() {
	boot, err := bootstrap.Server("xds.example:18000")
	if err != nil {
		log.Fatal(err)
	}
	var exchanges statuspage.Recorder
	c, err := client.New(client.Config{Bootstrap: boot, Trace: exchanges.Trace(nil)})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	mux := http.NewServeMux()
	mux.Handle("/debug/xds/", statuspage.New(c, statuspage.Config{Recorder: &exchanges}))
	operators := httptest.NewServer(mux) // http.ListenAndServe("127.0.0.1:9901", mux)
	defer operators.Close()

	resp, err := http.Get(operators.URL + "/debug/xds/?format=json")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	var status struct {
		Servers []struct{ URI, State string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
		log.Fatal(err)
	}
	for _, s := range status.Servers {
		fmt.Println(s.URI, s.State)
	}
	// Output: xds.example:18000 not used
}
