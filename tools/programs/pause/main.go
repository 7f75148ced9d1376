// The first container of every pod: holds the pod's namespaces until it is told to end, and as process 1 of a pod whose
// containers share processes it collects those that nobody waits for. As Kubernetes' build/pause/linux/pause.c, without C.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// Apart: a signal is dropped while one waits in its channel.
	end, child := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	signal.Notify(child, syscall.SIGCHLD)
	for {
		select {
		case <-end:
			return
		case <-child:
			for pid := 1; pid > 0; {
				pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			}
		}
	}
}
