import { it } from 'vitest'
import { startTestApp } from '../../support/app.ts'
import { openConnection, writeHead, writePost, writeChunk } from '../../support/http.ts'
it('probe', async () => {
  await using app = await startTestApp()
  const { publicId } = await app.createCheck()
  const P = `/ping/${publicId}`
  const show = async (label: string, base: string, bytes: string | Buffer, opt: {half?: boolean, end?: boolean} = {}) => {
    const c = openConnection(base, { allowHalfOpen: opt.half ?? false })
    c.send(bytes)
    if (opt.end) c.socket.end()
    const startedAt = performance.now()
    const r = await Promise.race([c.ended, new Promise<null>((r) => setTimeout(() => r(null), 2500))])
    if (r === null) { let t=''; try { const p = c.receive(); t = await Promise.race([p.then(a=>`${a.status} ${JSON.stringify(a.headers)} ${a.text}`), new Promise<string>(r=>setTimeout(()=>r('-'),50))]); p.catch(()=>{}) } catch (e) { t = String(e) }
      console.log(label, '=> STILL OPEN', t); c.socket.destroy() }
    else console.log(label, '=>', Math.round(performance.now()-startedAt), JSON.stringify(r.rest), r.error?.message)
  }
  const api = new URL(app.apiUrl).origin
  for (const [n, base] of [['ping', app.pingUrl], ['api', api], ['ops', app.opsUrl]] as const) {
    console.log('======', n)
    for (const t of ['http://[::1/x', 'http://a:99999999/', 'http://a b/', '*', 'x', 'http://', '//', '//[', 'http://a%zz/', '/%', '/\\', 'http://x:y@[/', '?', '#', 'javascript:alert(1)', 'http://\u00e9.com/', 'http://a^b/', '/a|b', 'http://xn--/', "http://*/", 'http://exa\tmple/', 'http://a.b:port/'])
      await show(`GET ${t}`, base, writeHead('GET', t, 'Connection: close'))
    await show('no host', base, 'GET / HTTP/1.1\r\n\r\n')
    await show('1.0', base, 'GET / HTTP/1.0\r\n\r\n')
    await show('two hosts', base, 'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n')
    await show('expect', base, writeHead('POST', P, 'Expect: pony', 'Content-Length: 2')+'hi')
    await show('connect', base, 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n')
    await show('upgrade', base, writeHead('GET', P, 'Connection: upgrade', 'Upgrade: websocket'))
    await show('h2 preface', base, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    await show('garbage', base, '\x16\x03\x01\x02\x00\x01\x00')
    await show('garbage, half open client', base, 'nonsense\r\n\r\n', { half: true })
    await show('half head + end', base, 'GET / HT', { end: true, half: true })
    await show('half body + end', base, writeHead('POST', P, 'Content-Length: 10') + 'abc', { end: true, half: true })
    await show('CL+TE', base, writeHead('POST', P, 'Content-Length: 10', 'Transfer-Encoding: chunked') + '0\r\n\r\n')
    await show('TE gzip, chunked', base, writeHead('POST', P, 'Transfer-Encoding: gzip, chunked') + '0\r\n\r\n')
    await show('TE identity', base, writeHead('POST', P, 'Transfer-Encoding: identity') + 'hello')
    await show('CL neg', base, writeHead('POST', P, 'Content-Length: -1') + 'hello')
    await show('CL x2', base, writeHead('POST', P, 'Content-Length: 5', 'Content-Length: 6') + 'hello')
    await show('CL huge', base, writeHead('POST', P, 'Content-Length: 99999999999999999999999') + 'hello')
    await show('chunk bad', base, writeHead('POST', P, 'Transfer-Encoding: chunked') + 'zz\r\n')
    await show('good then garbage', base, writeHead('GET', P) + 'garbage\r\n\r\n')
    await show('post then garbage', base, writePost(P, 'x'.repeat(5)).toString('latin1') + 'garbage\r\n\r\n')
    await show('big header', base, writeHead('GET', P, `X: ${'x'.repeat(20000)}`))
    await show('lower method', base, 'get / HTTP/1.1\r\nHost: x\r\n\r\n')
    await show('QUERY', base, writeHead('QUERY', P, 'Connection: close'))
    await show('TRACE', base, writeHead('TRACE', P, 'Connection: close'))
  }
  void writeChunk
}, 300_000)
