import { isLoopbackHost } from './addresses.ts'

/**
 * Whether what is sent to a URL can be read on its way. Loopback addresses do not count: nothing leaves this machine.
 */
export function isClear(url: string): boolean {
  const { protocol, password } = new URL(url)
  // With a password, smtp requires STARTTLS (channels/kinds/email/send.ts).
  const isPlain = protocol === 'http:' || (protocol === 'smtp:' && password === '')
  return isPlain && !isLoopback(url)
}

export function isLoopback(url: string): boolean {
  return isLoopbackHost(new URL(url).hostname.replace(/^\[(.*)\]$/, '$1'))
}
