package chaos

import "fmt"

// variant is how client and server of a world talk.
type variant struct {
	delta   bool
	perType bool
	tls     bool // mutual, with a bearer token
	via     via
	spares  int // servers to fall back to
}

// via is how the client finds the server.
type via string

const (
	viaTCP    via = "tcp"
	viaDNS    via = "dns"
	viaUnix   via = "unix"
	viaMemory via = "memory" // in fake time
)

// variants is how many there are with one server; with several there are fewer.
const variants = 2 * 2 * 2 * 3

// variantOf counts through them; neighbours differ in everything. With fallback there are spare servers.
func variantOf(seed uint64, fallback bool) variant {
	if fallback {
		n := seed * 5 % 8
		return variant{delta: n&1 != 0, perType: n&2 != 0, spares: 1 + int(n/4), via: viaTCP}
	}
	n := seed * 7 % variants
	return variant{delta: n&1 != 0, perType: n&2 != 0, tls: n&4 != 0, via: [...]via{viaTCP, viaDNS, viaUnix}[n/8]}
}

func (v variant) String() string {
	return fmt.Sprintf("delta=%v per-type=%v tls=%v via=%v spares=%d", v.delta, v.perType, v.tls, v.via, v.spares)
}
