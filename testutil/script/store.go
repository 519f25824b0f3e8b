package script

import (
	"strings"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// Stored are the resources of a type that a store has from an earlier run, as the words of the
// command store say it: items as in delta. The name of a collection alone, as *, is a resource
// without a body: its first state was complete.
func Stored(typ string, words []string) (rs []*discoveryv3.Resource) {
	for _, word := range words {
		if strings.HasSuffix(word, "*") {
			rs = append(rs, &discoveryv3.Resource{Name: word})
			continue
		}
		rs = append(rs, parseItem(word).resource(typ))
	}
	return rs
}

// Stale writes that what is held is from a store.
func Stale(is bool) string {
	if is {
		return " stale"
	}
	return ""
}
