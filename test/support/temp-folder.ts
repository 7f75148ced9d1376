import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Waits until its input ends, by `remove` or because the test process has died (Ctrl-C, kill -9). It then kills every
 * PostgreSQL process that works below the folder, paused ones too, and removes the folder. On Linux all processes of a
 * server are found by their working folder, elsewhere by their parent.
 */
const GUARD = `
cat > /dev/null
for file in $(find "$1" -name postmaster.pid); do
  pid=$(head -n 1 "$file"); cluster=\${file%/*}
  if [ -d /proc/self ]; then
    for process in /proc/[0-9]*; do
      [ "$process/cwd" -ef "$cluster" ] && kill -KILL "\${process#/proc/}"
    done
  else
    kill -KILL "$pid" $(pgrep -P "$pid")
  fi
done
for try in 1 2 3 4 5; do rm -rf "$1" && exit 0; sleep 1; done
exit 1
`

export type TempFolder = AsyncDisposable & { path: string; remove(): Promise<void> }

/** A new folder for one test's servers; whatever happens to this process, neither folder nor servers outlive it. */
export async function makeTempFolder(parent = tmpdir()): Promise<TempFolder> {
  const path = await mkdtemp(join(parent, 'heartbeat-test-'))
  // Under root PostgreSQL runs as another account; let it pass (that it need not is tested where it matters).
  if (process.geteuid?.() === 0) await chmod(path, 0o711)
  // A session of its own, out of reach of Ctrl-C; and it must not keep this process from ending.
  const guard = spawn('/bin/sh', ['-c', GUARD, 'guard', path], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
  const input = guard.stdin as typeof guard.stdin & { unref?: () => void }
  guard.unref()
  input.unref?.()
  const ended = once(guard, 'exit')
  const remove = async () => {
    guard.ref()
    input.end()
    const [status] = await ended
    if (status !== 0) throw new Error(`${path} cannot be removed`)
  }
  return { path, remove, [Symbol.asyncDispose]: remove }
}
