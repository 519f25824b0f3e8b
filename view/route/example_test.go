package route_test

import (
	"fmt"
	"net/http/httptest"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/xdswatch/xdswatch/view/route"
)

func Example() {
	table := route.Compile(&routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{{
		Name:    "shop",
		Domains: []string{"*.shop.example"},
		Routes: []*routev3.Route{{
			Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_PathSeparatedPrefix{PathSeparatedPrefix: "/cart"}},
			Action: &routev3.Route_Route{Route: &routev3.RouteAction{
				ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: "carts"},
				PrefixRewrite:    "/v2",
			}},
		}},
	}}}, nil)
	if err := table.Err(); err != nil {
		fmt.Println("in fault:", err)
	}

	req := route.FromHTTP(httptest.NewRequest("GET", "http://www.shop.example/cart/7", nil))
	found, err := table.Match(&req)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(found.Choose(&req).Cluster, found.RewritePath(&req))
	// Output: carts /v2/7
}
