package resources

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Bounds of what reading a file takes, in bytes of memory: minCost however small it is, and else maxGrowth times its
// size. What people and programs write takes some twenty times.
const (
	minCost   = 128 << 20
	maxGrowth = 64

	partCost  = 160 // of what begins a value of JSON, YAML or text
	entryCost = 480 // of a field of a response in binary, and what is found wrong with it
)

// beginnings begin a part of a text in JSON, YAML or the text format.
var beginnings = []string{"{", "[", ",", ":", "\n", "\r", "- ", "? ", "<"}

// AffordableText says whether a text can be read at a cost that its size makes up for.
func AffordableText(text []byte) error {
	n := 0
	for _, b := range beginnings {
		n += bytes.Count(text, []byte(b))
	}
	return affordable(n, partCost, len(text))
}

// affordableBinary is AffordableText for the entries of a DiscoveryResponse in binary.
func affordableBinary(data []byte) error {
	n := 0
	for rest := data; len(rest) > 0; n++ {
		_, _, size := protowire.ConsumeField(rest)
		if size < 0 {
			break // as its reader will say
		}
		rest = rest[size:]
	}
	return affordable(n, entryCost, len(data))
}

func affordable(parts, cost, size int) error {
	// H-5: parts of a few bytes become many times as much.
	if limit := max(minCost, maxGrowth*size) / cost; parts > limit {
		return fmt.Errorf("it has %d parts, and of %d bytes no more than %d are read", parts, size, limit)
	}
	return nil
}
