/**
 * docs/get-started/docker.md with a real engine: podman and podman-compose in place of docker. Its containers, networks
 * and mounts are in namespaces of their own and go with them. PostgreSQL is the image of the e2e lane, because there is
 * no registry.
 */

import { execFile } from 'node:child_process'
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { buildImages } from '../../tools/images/images.ts'
import { fetchDebianPackages, unpackedEnvironment } from '../../tools/programs/debian-packages.ts'
import { listBlocksOf, readText } from '../support/documents.ts'
import { makeTempFolder, type TempFolder } from '../support/temp-folder.ts'
import { installFromPyPi } from './tools.ts'

const [start, log, away, end, ...more] = listBlocksOf('test/clients/compose.test.ts').map(({ text }) => text)
const PACKAGES = ['podman', 'netavark', 'aardvark-dns', 'crun', 'conmon', 'iptables', 'iproute2']
const TABLES = ['iptables', 'iptables-save', 'iptables-restore', 'ip6tables', 'ip6tables-save', 'ip6tables-restore']
const LIMIT_MS = 300_000

let temp: TempFolder
beforeAll(async () => {
  temp = await makeTempFolder()
})
afterAll(() => temp?.remove())

it.runIf(process.geteuid?.() === 0)(
  'compose.yaml serves, and keeps pings while PostgreSQL is away',
  async () => {
    expect(more).toEqual([])
    const images = await buildImages({ names: ['heartbeat-operator', 'postgres'] })
    const python = await installFromPyPi()
    const root = await fetchDebianPackages({ name: 'podman', packages: PACKAGES, scope: 'missing' })
    const environment = await configure(root, dirname(python))
    const name = /^HEARTBEAT_IMAGE=(.+)$/m.exec(start!)![1]!
    const compose = readText('manifests/compose.yaml').replaceAll(
      /image: docker\.io.*/g,
      'image: localhost/postgres:dev',
    )
    await writeFile(join(temp.path, 'compose.yaml'), compose)
    const script = `
docker() { if [ "$1" = compose ]; then shift; podman-compose "$@"; else podman "$@"; fi; }
for archive in ${[...images.values()].join(' ')}; do podman load -q -i "$archive" > /dev/null; done
podman tag localhost/heartbeat-operator:dev ${name}
${start}
for try in $(seq 60); do podman healthcheck run heartbeat_heartbeat_1 && break; sleep 1; done
${log}
podman healthcheck run heartbeat_heartbeat_1 || { docker compose logs; exit 1; }
API=http://127.0.0.1:8081/api/v1
SAID=$(docker compose logs heartbeat 2>&1)
KEY=$(echo "$SAID" | sed -n 's/.*API key  *\\(hbk_[A-Za-z0-9_]*\\).*/\\1/p')
PROJECT=$(echo "$SAID" | sed -n 's/.*project  *\\([0-9a-f-]*\\).*/\\1/p')
call() { curl -fsS -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' "$API$@"; }
CHECK=$(call /checks -d "{\\"project_id\\":\\"$PROJECT\\",\\"name\\":\\"Backup\\"}")
field() { echo "$CHECK" | sed "s/.*\\"$1\\":\\"\\([^\\"]*\\)\\".*/\\1/"; }
curl -fsS http://127.0.0.1:8080/ping/$(field public_id)
${away!.replace('<public_id>', '$(field public_id)')}
for try in $(seq 60); do
  call "/checks/$(field id)" 2> /dev/null | grep -o '"pings_total":2' && break
  sleep 1
done
${end}`
    const printed = await runApart(environment, script)
    expect(printed).toMatch(/log-in +admin@example\.com \S+/)
    expect(printed).toMatch(/ping-stored: spool/i)
    expect(printed).toContain('"pings_total":2')
  },
  LIMIT_MS,
)

/** Files that podman reads instead of those of this machine. */
async function configure(root: string, pythonFolder: string): Promise<Record<string, string>> {
  const at = (...path: string[]) => join(temp.path, 'home', ...path)
  await mkdir(at('.config/containers'), { recursive: true })
  await mkdir(at('bin'))
  const usr = join(root, 'usr')
  for (const name of TABLES) await symlink(join(usr, 'sbin/xtables-nft-multi'), at('bin', name))
  const engine = `[engine]
conmon_path = ["${usr}/bin/conmon"]
helper_binaries_dir = ["${usr}/lib/podman"]
cgroup_manager = "cgroupfs"
events_logger = "file"
[engine.runtimes]
crun = ["${usr}/bin/crun"]
[network]
network_backend = "netavark"
network_config_dir = "${at('networks')}"
[containers]
cgroups = "disabled"
seccomp_profile = "unconfined"
`
  const storage = `[storage]\ndriver = "overlay"\ngraphroot = "${at('storage')}"\nrunroot = "${at('run')}"\n`
  await writeFile(at('containers.conf'), engine)
  await writeFile(at('storage.conf'), storage)
  await writeFile(at('registries.conf'), 'unqualified-search-registries = []\n')
  await writeFile(at('.config/containers/policy.json'), '{"default":[{"type":"insecureAcceptAnything"}]}')
  await chmod(at(), 0o755)
  // Compose would take variables of this process for those of the file .env.
  const own = unpackedEnvironment(root, { PATH: process.env.PATH })
  return {
    ...own,
    PATH: [at('bin'), pythonFolder, own.PATH].join(':'),
    HOME: at(),
    CONTAINERS_CONF: at('containers.conf'),
    CONTAINERS_STORAGE_CONF: at('storage.conf'),
    CONTAINERS_REGISTRIES_CONF: at('registries.conf'),
    XTABLES_LIBDIR: join(usr, 'lib', own.LD_LIBRARY_PATH!.split(':')[0]!.split('/').at(-1)!, 'xtables'),
  }
}

/**
 * What it prints, standard error included. crun is started without our environment, so the loader's cache knows the
 * libraries.
 */
function runApart(environment: Record<string, string>, script: string): Promise<string> {
  const prepare = `set -e
mount -t tmpfs tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
printf '%s\\n' $(echo "$LD_LIBRARY_PATH" | tr : ' ') 'include /etc/ld.so.conf' > "$HOME/ld.so.conf"
ldconfig -X -C "$HOME/ld.so.cache" -f "$HOME/ld.so.conf"
mount --bind "$HOME/ld.so.cache" /etc/ld.so.cache
exec 2>&1
`
  const apart = ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc']
  const options = { cwd: temp.path, env: environment, timeout: LIMIT_MS, killSignal: 'SIGKILL' as const }
  return new Promise((resolve, reject) => {
    execFile('unshare', [...apart, 'bash', '-c', prepare + script], options, (error, stdout, stderr) =>
      error === null ? resolve(stdout) : reject(new Error(`${error.code}: ${stdout}${stderr}`)),
    )
  })
}
