package machine

import "testing"

// A poll may ask for everything after others have named resources. What is watched beside the wildcard then waits
// for the answer to such a poll: those before did not hold everything.
//
// spec: WILD-2 P-1
func TestWildcardOfLaterPoll(t *testing.T) {
	r := newRig(t, Config{}, Server{Polled: true})
	r.typ.FullState = true
	take := func(version string, n int) (kinds []NoticeKind, names []string) {
		for _, task := range r.receive(version, n) {
			k, ns := news(r.decode(task))
			kinds, names = append(kinds, k...), append(names, ns...)
		}
		r.step(Written{r.ref}, Delivered{r.ref})
		return kinds, names
	}
	r.step(Start{r.watch("r0000")})
	r.up()
	take("1", 1)

	fx := r.step(Start{r.watch(star)}, Start{r.watch("r0001")}, Start{r.watch("r0002")})
	if kinds, names := news(fx); len(kinds) != 1 || kinds[0] != NoticeUpdated {
		t.Errorf("%v of %v is told before everything was asked for, want the one that is held", kinds, names)
	}
	kinds, names := news(r.step(Written{r.ref}))
	if len(kinds) > 0 {
		t.Errorf("%v of %v is told when everything was asked for", kinds, names)
	}
	absent := ""
	kinds, names = take("2", 2)
	for i, kind := range kinds {
		if kind == NoticeDoesNotExist {
			absent += names[i]
		}
	}
	if absent != "r0002" {
		t.Errorf("%q is told to be absent by the answer, want r0002: %v of %v", absent, kinds, names)
	}
}
