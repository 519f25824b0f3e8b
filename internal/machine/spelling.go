package machine

import "cmp"

// spellings are the names of a type that are requested in another spelling than the canonical one,
// which is for equality alone (XDSTP-4): that of the watch that first caused the request, for as long
// as the name is subscribed to. Servers may compare names as text. The zero value has none.
type spellings map[*subscription]string

// onWire is a name as it is subscribed to.
func (s spellings) onWire(sub *subscription) string { return cmp.Or(s[sub], sub.name) }

// spell notes how a name is to be subscribed to, nil for as it is, unless it is watched or subscribed to.
func (s spellings) spell(sub *subscription, spelling *string) {
	if sub.lives() {
		return
	}
	delete(s, sub)
	if spelling != nil && *spelling != sub.name {
		s[sub] = *spelling
	}
}

// given is under which name a server gave the value that is held, where that is not the subscription's
// own. It is told the version under that name. The zero value is the subscription's own name.
type given struct {
	name   string
	alias  bool // it is another name than the subscription's, which is an alias; else it is spelled otherwise
	shared bool // the bytes are those of another subscription of the resource, where they are counted
}

// give notes under which name a subscription's value was given.
func (c *cache) give(sub *subscription, as given) {
	if delete(c.given, sub); as != (given{}) {
		c.given[sub] = as
	}
}

// versionName is the name under which the server is told the version that is held.
func (sub *subscription) versionName() string { return cmp.Or(sub.of.cache.given[sub].name, sub.name) }
