package examples_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/store"
)

// newKeeping makes a client that keeps what it accepts in a directory, and starts with it if no
// server can be reached.
func newKeeping(boot *bootstrap.Config, dir string) (c *client.Client, stop func(), err error) {
	kept := store.Dir(dir, store.Options{MaxAge: 24 * time.Hour})
	c, err = client.New(client.Config{Bootstrap: boot, Store: kept})
	if err != nil {
		return nil, nil, err
	}
	return c, func() { c.Close(); kept.Close() }, nil // Close saves what is not saved yet
}

func Example_failStatic() {
	dir := must(os.MkdirTemp("", "kept"))
	defer os.RemoveAll(dir)
	blue, address := website("blue")
	defer blue.Close()
	m := manage(slices.Concat(routed("blue"), clustered("blue", address))...)
	boot := must(bootstrap.Server(m.Addr()))

	for _, when := range []string{"with the server", "after a restart without it"} {
		c, stop, err := newKeeping(boot, dir)
		check(err)
		answer := httptest.NewRecorder()
		must(newProxy(ctx, c, "ingress")).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://shop.example/", nil))
		fmt.Println(when, answer.Code, answer.Body)
		stop()
		m.Stop()
	}
	// Output:
	// with the server 200 blue
	// after a restart without it 200 blue
}
