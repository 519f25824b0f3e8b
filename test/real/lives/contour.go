package lives

import (
	"io"
	"slices"
	"sync"

	"github.com/projectcontour/contour/internal/xds"
	contour3 "github.com/projectcontour/contour/internal/xds/v3"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// contourServer is Contour's own server, with the clusters as Contour keeps them: the package of its
// caches takes a whole Kubernetes client along, so contourClusters does what they do.
type contourServer struct {
	clusters *contourClusters
}

func contour(t *truth) server {
	return &contourServer{&contourClusters{truth: t, changed: 1}}
}

func (s *contourServer) register(g *grpc.Server) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	contour3.RegisterServer(contour3.NewContourServer(log, s.clusters), g)
}

func (s *contourServer) change(typ, content) { s.clusters.notify() }

func (s *contourServer) stop() {}

// mute: it reads a request only after it has answered the one before, even if that asks for other names
// by then, and says nothing more until something changes.
func (s *contourServer) mute(_ typ, name string) bool {
	s.clusters.mu.Lock()
	defer s.clusters.mu.Unlock()
	return !slices.Contains(s.clusters.answered, name)
}

// contourClusters counts its changes. Who registers with an older count is told at once, others with the
// next change.
type contourClusters struct {
	truth *truth

	mu       sync.Mutex
	changed  int
	waiting  []chan int
	answered []string // the names of the newest answer
}

var _ xds.Resource = (*contourClusters)(nil)

func (c *contourClusters) TypeURL() string { return clusters.url() }

func (c *contourClusters) Contents() []proto.Message { return c.Query(names) }

// Query leaves out what there is not.
func (c *contourClusters) Query(asked []string) (found []proto.Message) {
	c.mu.Lock()
	c.answered = asked
	c.mu.Unlock()
	all := c.truth.messages(clusters)
	for _, name := range asked {
		if m := all[name]; m != nil {
			found = append(found, m)
		}
	}
	return found
}

func (c *contourClusters) Register(ch chan int, last int, _ ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last < c.changed {
		ch <- c.changed
		return
	}
	c.waiting = append(c.waiting, ch)
}

func (c *contourClusters) notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed++
	for _, ch := range c.waiting {
		ch <- c.changed
	}
	c.waiting = nil
}
