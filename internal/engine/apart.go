package engine

// Apart runs code of the program's on a goroutine of its own, since it may end that (runtime.Goexit), and
// waits for it. If f does not return, failed is called there with what was recovered: nil after a Goexit.
func Apart(f func(), failed func(p any)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		returned := false
		defer func() {
			if !returned {
				failed(recover())
			}
		}()
		f()
		returned = true
	}()
	<-done
}
