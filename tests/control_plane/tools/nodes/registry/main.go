// A registry on loopback with the images of the tests, all in memory.
//
//	registry -address 127.0.0.1:PORT -agent FILE -slow DURATION
//
// agent:1 to agent:9 are one layer with the program FILE; they differ in a label. pause:1 is the same
// program, which then waits. slow:1 to slow:9 have a second layer each, which takes DURATION to be
// pulled. It listens when all of them are available.
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const versions = 9

func main() {
	address := flag.String("address", "", "listen address")
	agent := flag.String("agent", "", "the program in all images")
	slow := flag.Duration("slow", 20*time.Second, "pull duration of the slow images")
	flag.Parse()

	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	program, err := os.ReadFile(*agent)
	check(err)
	base := layer("agent", program)
	push(images, *address, "pause", 1, base)
	sizes := map[string]int64{} // of the slow layers, by digest
	for version := 1; version <= versions; version++ {
		push(images, *address, "agent", version, base)
		own := layer("data", fmt.Appendf(nil, "the data of version %d", version))
		push(images, *address, "slow", version, base, own)
		digest, err := own.Digest()
		check(err)
		sizes[digest.String()], err = own.Size()
		check(err)
	}
	check(http.ListenAndServe(*address, http.HandlerFunc(
		func(answer http.ResponseWriter, request *http.Request) {
			if size, found := sizes[path.Base(request.URL.Path)]; found {
				answer = &throttled{answer, *slow / time.Duration(size)}
			}
			images.ServeHTTP(answer, request)
		},
	)))
}

// layer returns a layer with one executable file.
func layer(file string, content []byte) v1.Layer {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	check(writer.WriteHeader(&tar.Header{Name: file, Mode: 0o755, Size: int64(len(content))}))
	_, err := writer.Write(content)
	check(err)
	check(writer.Close())
	made, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	})
	check(err)
	return made
}

// push adds an image to the registry without a network, before it listens.
func push(images http.Handler, address, repository string, version int, layers ...v1.Layer) {
	image, err := mutate.AppendLayers(empty.Image, layers...)
	check(err)
	config, err := image.ConfigFile()
	check(err)
	config = config.DeepCopy()
	config.Architecture, config.OS = "amd64", "linux"
	config.Config.Entrypoint = []string{"/agent"}
	if repository == "pause" {
		config.Config.Entrypoint = []string{"/agent", "pause"}
	}
	config.Config.Labels = map[string]string{"version": fmt.Sprint(version)}
	image, err = mutate.ConfigFile(image, config)
	check(err)
	tag, err := name.NewTag(fmt.Sprintf("%s/%s:%d", address, repository, version))
	check(err)
	check(remote.Write(tag, image, remote.WithTransport(inside{images})))
}

// inside passes requests to a handler of this process.
type inside struct{ handler http.Handler }

func (it inside) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body == nil {
		request.Body = http.NoBody
	}
	recorder := httptest.NewRecorder()
	it.handler.ServeHTTP(recorder, request)
	answer := recorder.Result()
	answer.Request = request
	return answer, nil
}

// throttled writes one byte at a time, with a pause before each, so that the pull makes progress.
type throttled struct {
	http.ResponseWriter
	pause time.Duration
}

func (it *throttled) Write(body []byte) (int, error) {
	for written := range body {
		time.Sleep(it.pause)
		if _, err := it.ResponseWriter.Write(body[written : written+1]); err != nil {
			return written, err
		}
		if flusher, ok := it.ResponseWriter.(http.Flusher); ok {
			flusher.Flush()
		}
	}
	return len(body), nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
