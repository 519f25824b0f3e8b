package configdump_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/configdump"
)

func Example() {
	boot, err := bootstrap.Server("127.0.0.1:18000")
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: boot})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	mux := http.NewServeMux()
	mux.Handle("/config_dump", configdump.Handler(c)) // on a port for operators

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/config_dump?resource=dynamic_active_clusters&mask=cluster.name", nil))
	fmt.Println(w.Body)
	// Output: {"configs":[]}
}
