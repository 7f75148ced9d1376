package main

import (
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const pingURL = "{{url}}"

func yourJob() error {
	fmt.Println("here goes your job")
	return nil
}

func heartbeat(signal, text string) {
	if len(text) > 10_000 {
		text = text[len(text)-10_000:]
	}
	client := &http.Client{Timeout: 10 * time.Second}
	var problem error
	for _, wait := range []time.Duration{0, 1, 2, 4} {
		time.Sleep(wait * time.Second)
		response, err := client.Post(pingURL+signal, "text/plain", strings.NewReader(text))
		if err != nil {
			var withURL *url.Error // its text holds the URL, which is a secret
			if errors.As(err, &withURL) {
				err = withURL.Err
			}
			problem = err
			continue
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return
		}
		problem = errors.New(response.Status)
		if response.StatusCode < 500 {
			break
		}
	}
	log.Println("the heartbeat could not be sent:", problem)
}

func main() {
	heartbeat("/start", "")
	if err := yourJob(); err != nil {
		heartbeat("/1", err.Error())
		log.Fatal(err)
	}
	heartbeat("/0", "")
}
