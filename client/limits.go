package client

// What the client takes and keeps of a server's resources where the program does not say.
const (
	defaultMaxResourceSize = 16 << 20 // bytes
	defaultMaxHeldSize     = 4 << 30
)

// limit returns the bound that a field of [Config] asks for: the default for 0, and 0, which is no bound, for what
// is negative.
func limit[N int | int64](field, byDefault N) N {
	switch {
	case field == 0:
		return byDefault
	case field < 0:
		return 0
	}
	return field
}
