package client

// What the client takes and keeps of a server's resources where the program does not say.
const (
	defaultMaxResourceSize = 16 << 20 // bytes
	defaultMaxHeldSize     = 4 << 30
)

// limit is what a field of [Config] says, where 0 means a default, and what is negative no bound;
// 0 for that.
func limit[N int | int64](field, byDefault N) N {
	switch {
	case field == 0:
		return byDefault
	case field < 0:
		return 0
	}
	return field
}
