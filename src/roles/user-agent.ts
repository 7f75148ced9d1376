/** How the operator names itself to API servers: in audit logs, and by API Priority and Fairness. */

import { VERSION } from '../runtime/version.ts'

/** By their names in Go, as all Kubernetes clients write them. */
const PLATFORMS: Partial<Record<NodeJS.Platform, string>> = { win32: 'windows' }
const ARCHITECTURES: Partial<Record<NodeJS.Architecture, string>> = { x64: 'amd64', ia32: '386' }

/** `heartbeat-operator/1.0.0 (linux/amd64) controller`. @param role `all`, `controller`, or a command */
export function userAgent(
  role: string,
  { platform, arch }: Pick<NodeJS.Process, 'platform' | 'arch'> = process,
): string {
  return `heartbeat-operator/${VERSION} (${PLATFORMS[platform] ?? platform}/${ARCHITECTURES[arch] ?? arch}) ${role}`
}
