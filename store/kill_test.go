package store

import (
	"bufio"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/client"
)

// writerArg makes this program a process of [TestKilledWriters].
const writerArg = "write"

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == writerArg {
		from, err := strconv.Atoi(os.Args[3])
		if err == nil {
			err = write(os.Args[2], from)
		}
		log.Fatal(err)
	}
	if len(os.Args) == 4 && os.Args[1] == watcherArg {
		log.Fatal(watch(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// write saves number after number under five names, says each that is saved, and ends with an error.
func write(path string, from int) error {
	d := Dir(path, Options{})
	for i := from; ; i++ {
		if i == from+3 {
			d.section(clusters).rewrites = true // the whole file anew
		}
		var all []client.StoredResource
		for j := range 5 {
			all = append(all, put(fmt.Sprint("name-", j), strconv.Itoa(i)))
		}
		// What the last process was writing when it was killed may be damaged; the changes are saved.
		if err := d.Save(clusters, all); err != nil && !errors.As(err, new(*DamageError)) {
			return err
		}
		fmt.Println(i)
	}
}

// Processes that write are killed, one after the other. Each time everything is there as it was saved last,
// or as it was being saved.
//
// spec: LKG-7 LKG-9
func TestKilledWriters(t *testing.T) {
	if testing.Short() {
		t.Skip("long: processes that are killed")
	}
	t.Parallel()
	path, next := t.TempDir(), 0
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		cmd := exec.Command(os.Args[0], writerArg, path, strconv.Itoa(next))
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		said, saved := bufio.NewScanner(out), next-1
		hear := func() bool {
			if !said.Scan() {
				return false
			}
			n, err := strconv.Atoi(said.Text())
			if err != nil {
				t.Fatalf("the writer says %q", said.Text())
			}
			saved = n
			return true
		}
		for range 1 + random.IntN(6) {
			if !hear() {
				t.Fatal("the writer has ended by itself")
			}
		}
		time.Sleep(time.Duration(random.IntN(3000)) * time.Microsecond) // to be anywhere in a write
		must(t, cmd.Process.Kill())
		for hear() { // what it said before
		}
		_ = cmd.Wait()
		got, err := held(t, path, Options{})
		if damage := (*DamageError)(nil); err != nil && !errors.As(err, &damage) {
			t.Fatal(err)
		}
		for j := range 5 {
			name := fmt.Sprint("name-", j)
			if v := got[name]; v != strconv.Itoa(saved) && v != strconv.Itoa(saved+1) {
				t.Errorf("%s is %q after %d was saved", name, v, saved)
			}
		}
		next = saved + 2
	}
}
