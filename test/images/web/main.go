// Command web is the service that test pods run: it answers 200 on /readyz once
// ready, and its name on every other path. With -exit it is a program that ends.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	address := flag.String("listen", ":8080", "address to listen on")
	after := flag.Duration("ready-after", 0, "how long /readyz answers 503 first; negative: for ever")
	once := flag.String("ready-once", "", "a file that the first run leaves behind; a run that finds it is never ready")
	runs := flag.String("runs", "", "a file that each run adds a line to")
	exit := flag.Int("exit", -1, "exit at once with this code, and serve nothing")
	needs := flag.String("needs", "", "a URL that must answer within 1 s when the program starts, or it ends")
	flag.Parse()
	if *runs != "" {
		note(*runs)
	}
	if *exit >= 0 {
		os.Exit(*exit)
	}
	if *once != "" && ranBefore(*once) {
		*after = -1
	}
	if *needs != "" {
		response, err := (&http.Client{Timeout: time.Second}).Get(*needs)
		if err != nil {
			log.Fatal(err)
		}
		_ = response.Body.Close()
	}

	start := time.Now()
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if *after < 0 || time.Since(start) < *after {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		name, _ := os.Hostname()
		_, _ = fmt.Fprintln(w, name)
	})
	server := &http.Server{Addr: *address, Handler: mux}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	log.Printf("listening on %s", *address)
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		log.Fatal(err)
	}
}

// ranBefore says whether an earlier run left the file, and leaves it.
func ranBefore(path string) bool {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if os.IsExist(err) {
		return true
	}
	if err != nil {
		log.Fatal(err)
	}
	keep(file)
	return false
}

// note adds a line to a file.
func note(path string) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := fmt.Fprintln(file, time.Now().UTC().Format(time.RFC3339Nano)); err != nil {
		log.Fatal(err)
	}
	keep(file)
}

// keep closes a file so that a power cut does not lose it.
func keep(file *os.File) {
	defer file.Close()
	if err := file.Sync(); err != nil {
		log.Fatal(err)
	}
	dir, err := os.Open(filepath.Dir(file.Name()))
	if err != nil {
		log.Fatal(err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		log.Fatal(err)
	}
}
