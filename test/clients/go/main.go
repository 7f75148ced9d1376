// A client by oapi-codegen. Its output is compared with that of the other generators.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"

	"heartbeat-operator/test/clients/go/heartbeat"

	"github.com/google/uuid"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func clientFor(url string) *heartbeat.ClientWithResponses {
	key := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("API_KEY"))
		return nil
	}
	client, err := heartbeat.NewClientWithResponses(url, heartbeat.WithRequestEditorFn(key))
	must(err)
	return client
}

func main() {
	ctx := context.Background()
	api := clientFor(os.Getenv("BASE_URL"))
	pings := clientFor(os.Getenv("PING_URL"))
	project := uuid.MustParse(os.Getenv("PROJECT_ID"))
	period := 60

	// The smallest body.
	created, err := api.CreateCheckWithResponse(ctx, heartbeat.NewCheck{ProjectId: project, Name: "Generated", PeriodSeconds: &period})
	must(err)
	check := created.JSON201
	if check == nil {
		log.Fatal(string(created.Body))
	}

	blank := " "
	wrong, err := api.UpdateCheckWithResponse(ctx, check.Id, heartbeat.CheckUpdate{Name: &blank})
	must(err)

	answer, err := pings.PostExitCodeWithBodyWithResponse(ctx, *check.PublicId, 3, nil, "text/plain", strings.NewReader("dump failed"))
	must(err)

	limit := 10
	history, err := api.ListPingsWithResponse(ctx, check.Id, &heartbeat.ListPingsParams{Limit: &limit})
	must(err)
	entries := [][]any{}
	for _, ping := range history.JSON200.Pings {
		entries = append(entries, []any{ping.Type, ping.ExitCode, ping.Body})
	}

	statuses := []heartbeat.ListChecksParamsStatus{"down", "late"}
	listed, err := api.ListChecksWithResponse(ctx, &heartbeat.ListChecksParams{ProjectId: project, Status: &statuses})
	must(err)
	names := []string{}
	for _, check := range listed.JSON200.Checks {
		names = append(names, check.Name)
	}

	paused, err := api.PauseCheckWithResponse(ctx, check.Id, heartbeat.PauseCheckJSONRequestBody{})
	must(err)

	var body heartbeat.NewChannel
	must(body.FromNewWebhookChannel(heartbeat.NewWebhookChannel{
		Name:   "Pager",
		Config: heartbeat.WebhookConfigInput{Url: "https://hooks.example.com/heartbeat"},
	}))
	channel, err := api.CreateChannelWithResponse(ctx, body)
	must(err)
	webhook, err := channel.JSON201.AsCreatedWebhookChannel()
	must(err)

	deleted, err := api.RemoveCheckWithResponse(ctx, check.Id)
	must(err)

	output := new(bytes.Buffer)
	must(json.NewEncoder(output).Encode(map[string]any{
		"created": check.Status,
		"code":    wrong.JSON400.Code,
		"wrong":   (*wrong.JSON400.Details)[0].Path,
		"answer":  string(answer.Body),
		"pings":   entries,
		"listed":  names,
		"paused":  paused.JSON200.Status,
		"url":     webhook.Config.Url,
		"deleted": deleted.StatusCode(),
	}))
	fmt.Print(output.String())
}
