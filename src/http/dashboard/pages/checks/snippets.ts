/**
 * How a job reports to its check, in the languages of users. Each snippet runs as it is, tries four times with a time-out of ten seconds, and
 * never changes the result of the job when a ping cannot be sent. docs/pings.md explains them.
 */

import type { ScheduleTexts } from '../../words/schedule-words.ts'
import { quoteForShell } from './shell-text.ts'
import { forCronJob, forCrontab } from './snippet-schedule.ts'
import { yamlText } from './yaml-text.ts'

/** What the snippets know of a check. */
export interface SnippetCheck extends ScheduleTexts {
  readonly pingUrl: string
  readonly slug: string
  /** The HeartbeatCheck that declares it. Where that publishes the URL is not known here: by default in a Secret beside it. */
  readonly kubernetes: { readonly namespace: string; readonly name: string } | null
  /** Its Jobs report by themselves, so that its HeartbeatCheck publishes nothing by default. Default: false. */
  readonly isFollowed?: boolean
}

export const SNIPPET_IDS = ['curl', 'crontab', 'bash', 'kubernetes', 'python', 'node', 'go', 'powershell'] as const
export type SnippetId = (typeof SNIPPET_IDS)[number]

export interface Snippet {
  readonly id: SnippetId
  readonly title: string
  /** Where it goes, what it needs. */
  readonly note: string
  readonly text: string
}

export function snippetsOf(check: SnippetCheck): Snippet[] {
  const { pingUrl: url } = check
  return [
    {
      id: 'curl',
      title: 'curl',
      note: 'Put it behind the last command of your job. Run it now to try it.',
      text: `${CURL} ${quoteForShell(url)} || ${WARN}\n`,
    },
    {
      id: 'crontab',
      title: 'crontab',
      note: 'Add it with "crontab -e". It reports failures too, by their exit code.',
      text: crontab(check),
    },
    {
      id: 'bash',
      title: 'bash, with output and exit code',
      note: 'It reports the start, the exit code and the end of the output, which is then part of the alert.',
      text: bash(url),
    },
    {
      id: 'kubernetes',
      title: 'Kubernetes CronJob',
      note:
        check.kubernetes === null
          ? 'The ping URL is in a Secret. Apply it with "kubectl apply -f", with the image and the command of your job.'
          : `${publishedNote(check)} Put in the image and the command of your job.`,
      text: cronJob(check),
    },
    {
      id: 'python',
      title: 'Python',
      note: 'Python 3.6 or later; it needs no package.',
      text: python(url),
    },
    { id: 'node', title: 'Node.js', note: 'Node.js 18 or later. Save it as job.mjs.', text: node(url) },
    { id: 'go', title: 'Go', note: 'It needs the standard library only.', text: go(url) },
    { id: 'powershell', title: 'PowerShell', note: 'PowerShell 5.1 or later.', text: powershell(url) },
  ]
}

function publishedNote({ kubernetes, isFollowed = false }: SnippetCheck): string {
  const secret = `the Secret ${kubernetes?.name}-heartbeat, with the key HEARTBEAT_URL`
  const others =
    'Where its spec.publish has another name, write that under envFrom; for the kind ConfigMap write configMapRef instead of secretRef; for another key, that instead of HEARTBEAT_URL in the command.'
  return isFollowed
    ? `The Jobs of the CronJob report by themselves, so the HeartbeatCheck publishes no ping URL by default (spec.publish.kind None). For pings beside them set that to Secret: the URL is then in ${secret}. ${others}`
    : `By default the HeartbeatCheck publishes the ping URL in ${secret}. ${others} With the kind None it publishes nothing: set that to Secret.`
}

/** A connection that is rejected is retried too: the service may be starting. Older versions of curl do not know --retry-all-errors. */
const CURL = 'curl -fsS -m 10 --retry 3 --retry-connrefused -o /dev/null'
const WARN = "echo 'the heartbeat could not be sent' >&2"

// Literals. A ping URL has the characters of a URL, and PING_URL is set by an administrator; quotes are escaped all the same. -----

/** A string of JSON is a string of Python, JavaScript and Go. */
const quote = (text: string): string => JSON.stringify(text)

function quoteForPowerShell(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

// ---------------------------------------------------------------------------------------------------------------------------

/** In a crontab, % ends the command. The exit code goes behind the URL, outside of the quotes. */
function crontab({ pingUrl, timeZone, ...rest }: SnippetCheck): string {
  const command = `/path/to/your-job; ${CURL} ${quoteForShell(pingUrl)}/$?`.replaceAll('%', '\\%')
  const zone =
    rest.schedule === null || timeZone === null
      ? ''
      : `# The check expects these times in ${timeZone}; cron reads them in the time zone of the machine.\n`
  return `${zone}${forCrontab({ timeZone, ...rest })} ${command}\n`
}

function bash(url: string): string {
  return `#!/bin/bash
url=${quoteForShell(url)}
heartbeat() { ${CURL} "$@" || ${WARN}; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT

heartbeat "$url/start"
./your-job 2>&1 | tee "$log"
code=\${PIPESTATUS[0]}
tail -c 10000 "$log" | heartbeat --data-binary @- "$url/$code"
exit "$code"
`
}

/** A name of a CronJob has at most 52 characters of a-z, 0-9 and -; a name of a Secret more. */
const CRON_JOB_NAME_LENGTH = 52

function cronJob(check: SnippetCheck): string {
  const { kubernetes, slug, pingUrl, schedule, timeZone } = check
  const base = (kubernetes?.name ?? slug).replace(/[^a-z0-9-]/g, '-').slice(0, CRON_JOB_NAME_LENGTH)
  const name = base.replace(/^-+|-+$/g, '') || 'job'
  const secret = yamlText(`${kubernetes?.name ?? name}-heartbeat`)
  const namespace = kubernetes === null ? '' : `\n  namespace: ${yamlText(kubernetes.namespace)}`
  const when = forCronJob(check)
  const zone = schedule === null || timeZone === null ? '' : `\n  timeZone: ${yamlText(timeZone)}`
  const source =
    kubernetes === null
      ? `apiVersion: v1
kind: Secret
metadata:
  name: ${secret}
stringData:
  HEARTBEAT_URL: ${yamlText(pingUrl)}
---
`
      : ''
  const origin = kubernetes === null ? '' : ' # spec.publish.name of the HeartbeatCheck, if it has one'
  return `${source}apiVersion: batch/v1
kind: CronJob
metadata:
  name: ${yamlText(name)}${namespace}
spec:
  schedule: ${when}${zone}
  concurrencyPolicy: Forbid
  jobTemplate:
    spec:
      backoffLimit: 0
      template:
        spec:
          restartPolicy: Never
          automountServiceAccountToken: false
          securityContext:
            runAsNonRoot: true
            runAsUser: 65532
            seccompProfile:
              type: RuntimeDefault
          containers:
            - name: job
              image: curlimages/curl:8.11.1
              envFrom:
                - secretRef:
                    name: ${secret}${origin}
                    optional: true
              command: [sh, -c]
              args:
                - |
                  your_job() { echo 'here goes your job'; }
                  output=$(your_job 2>&1)
                  code=$?
                  printf '%s\\n' "$output"
                  printf '%s\\n' "$output" | tail -c 10000 |
                    ${CURL} --data-binary @- "$HEARTBEAT_URL/$code" ||
                    ${WARN}
                  exit $code
              securityContext:
                allowPrivilegeEscalation: false
                readOnlyRootFilesystem: true
                capabilities:
                  drop: [ALL]
`
}

function python(url: string): string {
  return `import http.client
import sys
import time
import traceback
import urllib.request

URL = ${quote(url)}


def main():
    print("here goes your job")


def heartbeat(signal, text=""):
    body = text.encode(errors="replace")[-10_000:]
    request = urllib.request.Request(URL + signal, data=body)
    for wait in (1, 2, 4, None):
        try:
            with urllib.request.urlopen(request, timeout=10):
                return
        except (OSError, http.client.HTTPException) as error:
            if wait is None or getattr(error, "code", 503) < 500:
                print(f"the heartbeat could not be sent: {error}", file=sys.stderr)
                return
        time.sleep(wait)


heartbeat("/start")
try:
    main()
except Exception:
    heartbeat("/1", traceback.format_exc())
    raise
heartbeat("/0")
`
}

function node(url: string): string {
  return `import { setTimeout } from 'node:timers/promises'

const PING_URL = ${quote(url)}

async function main() {
  console.log('here goes your job')
}

async function heartbeat(signal, text = '') {
  const body = Buffer.from(text).subarray(-10_000)
  let problem
  for (const waitMs of [0, 1_000, 2_000, 4_000]) {
    await setTimeout(waitMs)
    try {
      const options = { method: 'POST', body, signal: AbortSignal.timeout(10_000) }
      const response = await fetch(PING_URL + signal, options)
      problem = \`\${response.status} \${await response.text()}\`
      if (response.ok) return
      if (response.status < 500) break
    } catch (error) {
      problem = error
    }
  }
  console.error('the heartbeat could not be sent:', problem)
}

await heartbeat('/start')
try {
  await main()
} catch (error) {
  await heartbeat('/1', String(error?.stack ?? error))
  throw error
}
await heartbeat('/0')
`
}

function go(url: string): string {
  return `package main

import (
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const pingURL = ${quote(url)}

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
`
}

function powershell(url: string): string {
  return `$Url = ${quoteForPowerShell(url)}

function Send-Heartbeat($Signal, $Text = '') {
  [byte[]] $body = [Text.Encoding]::UTF8.GetBytes($Text) | Select-Object -Last 10000
  foreach ($wait in 0, 1, 2, 4) {
    Start-Sleep -Seconds $wait
    try {
      $null = Invoke-WebRequest "$Url$Signal" -Method Post -Body $body -TimeoutSec 10 -UseBasicParsing
      return
    } catch {
      $problem = $_.Exception
      $status = [int] $problem.Response.StatusCode
      if ($status -ge 400 -and $status -lt 500) { break }
    }
  }
  Write-Warning "the heartbeat could not be sent: $($problem.Message)"
}

Send-Heartbeat '/start'
$output = ./your-job 2>&1 | Out-String
$code = $LASTEXITCODE
Write-Output $output
Send-Heartbeat $(if ($code -ge 0 -and $code -le 255) { "/$code" } else { '/fail' }) $output
exit $code
`
}
