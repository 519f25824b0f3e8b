package script_test

import (
	"fmt"
	"log"

	"github.com/xdswatch/xdswatch/testutil/script"
)

// A driver reads a script, gives a client what each step says, and compares what the client did.
func Example() {
	s, err := script.Parse("nack", []byte(`# A cluster is subscribed to by its name.

watch w1 cds orders
----
-> 1 cds names=[orders] node
`))
	if err != nil {
		log.Fatal(err)
	}
	for _, step := range s.Steps {
		did := []string{"-> 1 cds names=[orders]"} // by a client that forgets its node
		fmt.Print(step.Diff(did, script.Requests))
	}
	// Output:
	// line 3: watch w1 cds orders
	// want:
	// 	-> 1 cds names=[orders] node
	// got:
	// 	-> 1 cds names=[orders]
}
