package engine

// Apart runs code of the program's on a goroutine of its own, since it may end that (runtime.Goexit), and
// waits for it. If f does not return, failed is called there with what was recovered: nil after a Goexit.
func Apart(f func(), failed func(p any)) { <-Go(f, failed) }

// Go is Apart without waiting; done is closed when it is over.
func Go(f func(), failed func(p any)) (done <-chan struct{}) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		returned := false
		defer func() {
			if !returned {
				failed(recover())
			}
		}()
		f()
		returned = true
	}()
	return over
}

// ApartInHandler is Apart for a caller inside a handler, which waits: f is inside it too, see [InHandler].
func ApartInHandler(f func(), failed func(p any)) { Apart(func() { inHandler(f) }, failed) }

//go:noinline
func inHandler(f func()) { f() }
