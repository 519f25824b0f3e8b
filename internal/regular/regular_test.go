package regular

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	four, link := filepath.Join(dir, "four"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(four, []byte("1234"), 0o600), os.Symlink("four", link)); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		path  string
		limit int64
		want  string
		err   string
		is    error
	}{
		"up to the limit":  {path: four, limit: 4, want: "1234"},
		"through a link":   {path: link, limit: 5, want: "1234"},
		"beyond the limit": {path: four, limit: 3, err: "larger than the limit of 3 bytes"},
		"no file":          {path: filepath.Join(dir, "none"), limit: 4, is: fs.ErrNotExist},
		"a directory":      {path: dir, limit: 4, is: ErrNotRegular},
		"a device":         {path: os.DevNull, limit: 4, is: ErrNotRegular},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(tt.path, tt.limit)
			switch {
			case tt.is != nil && !errors.Is(err, tt.is), tt.err != "" && (err == nil || err.Error() != tt.err):
				t.Errorf("error %v, want %v%s", err, tt.is, tt.err)
			case tt.is == nil && tt.err == "" && err != nil, string(got) != tt.want:
				t.Errorf("read %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}
