/** The objects of the story: a job that is watched, and a receiver of webhooks. */

/** As Pod Security `restricted` wants them. */
const POD_SECURITY = { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } }
const CONTAINER_SECURITY = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
}

export const aNamespace = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
})

export const aHeartbeatCheck = (namespace: string, name: string, spec: object) => ({
  apiVersion: 'heartbeat-operator.io/v1',
  kind: 'HeartbeatCheck',
  metadata: { namespace, name },
  spec,
})

/**
 * Every minute a container runs this shell script, which reports as the README says: exit code and output, to the URL of the
 * published Secret.
 */
export const aCronJob = (namespace: string, name: string, script: string) => ({
  apiVersion: 'batch/v1',
  kind: 'CronJob',
  metadata: { namespace, name },
  spec: {
    schedule: '* * * * *',
    concurrencyPolicy: 'Forbid',
    jobTemplate: {
      spec: {
        backoffLimit: 0,
        template: {
          spec: {
            restartPolicy: 'Never',
            automountServiceAccountToken: false,
            securityContext: POD_SECURITY,
            containers: [
              {
                name: 'job',
                image: 'localhost/job:dev',
                envFrom: [{ secretRef: { name: `${name}-heartbeat` } }],
                command: ['sh', '-c', REPORTED, 'job', script],
                securityContext: CONTAINER_SECURITY,
              },
            ],
          },
        },
      },
    },
  },
})

const REPORTED = `
output=$(sh -c "$1" 2>&1)
code=$?
printf '%s\\n' "$output"
printf '%s\\n' "$output" | curl -fsS -m 10 --retry 3 --data-binary @- "$HEARTBEAT_URL/$code"
exit $code
`

/** Port 80 of the Service takes webhooks; GET of it returns all that came, as `Delivered[]` in JSON. */
export const aReceiver = (namespace: string, name: string) => [
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { namespace, name },
    spec: {
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: {
          automountServiceAccountToken: false,
          securityContext: POD_SECURITY,
          terminationGracePeriodSeconds: 0,
          containers: [
            {
              name: 'receiver',
              image: 'localhost/heartbeat-operator:dev',
              args: ['--input-type=module', '--eval', RECEIVER],
              ports: [{ containerPort: 8080 }],
              readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 },
              securityContext: CONTAINER_SECURITY,
            },
          ],
        },
      },
    },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace, name },
    spec: { selector: { app: name }, ports: [{ port: 80, targetPort: 8080 }] },
  },
]

export interface Delivered {
  readonly headers: Record<string, string>
  readonly body: string
}

const RECEIVER = `
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
const delivered = []
createServer(async (request, response) => {
  if (request.method === 'GET') return response.end(JSON.stringify(delivered))
  delivered.push({ headers: request.headers, body: await text(request) })
  response.writeHead(204).end()
}).listen(8080)
process.on('SIGTERM', () => process.exit())
`
