/** The settings of the node's programs, and the addresses of the box (`box.sh` makes its network). */

import { join } from 'node:path'
import { stringify } from 'yaml'

/** For the host, and for pods. */
export const NODE_ADDRESS = '10.97.0.2'
export const NODE_NAME = 'node1'
const POD_RANGE = '10.244.0.0/24'
const CLUSTER_DOMAIN = 'cluster.local'
/** As `box.sh` calls it. */
const CGROUP = '/heartbeat-node'
const PAUSE_IMAGE = 'localhost/pause:dev'

export const containerdSocket = (folder: string) => join(folder, 'containerd.sock')

/** containerd 1.6, whose settings are version 2. `plugins`: the folder of the CNI plugins. */
export const describeContainerd = (folder: string, plugins: string) => `
version = 2
root = "${join(folder, 'containerd')}"
state = "/run/containerd"
[grpc]
  address = "${containerdSocket(folder)}"
[plugins."io.containerd.internal.v1.opt"]
  path = "${join(folder, 'opt')}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  # Not every machine lets even root lower an OOM score.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${plugins}"
    conf_dir = "${join(folder, 'cni')}"
`

/** Pods reach each other, the node and the host; nothing rewrites their addresses on the way out, and there is none. */
export const describeNetwork = () =>
  JSON.stringify({
    cniVersion: '1.0.0',
    name: 'pods',
    plugins: [
      {
        ...{ type: 'bridge', bridge: 'cni0', isGateway: true, hairpinMode: true, ipMasq: false },
        ipam: { type: 'host-local', ranges: [[{ subnet: POD_RANGE }]], routes: [{ dst: '0.0.0.0/0' }] },
      },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  })

/** `clientCaPath`: whose certificates it lets in, the API server's. */
export const describeKubelet = (folder: string, clientCaPath: string) =>
  stringify({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    failCgroupV1: false,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: CGROUP,
    containerRuntimeEndpoint: `unix://${containerdSocket(folder)}`,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: false },
      x509: { clientCAFile: clientCaPath },
    },
    authorization: { mode: 'AlwaysAllow' },
    address: NODE_ADDRESS,
    healthzPort: 0,
    readOnlyPort: 0,
    clusterDomain: CLUSTER_DOMAIN,
    clusterDNS: [NODE_ADDRESS],
    resolvConf: '',
    oomScoreAdj: 0,
    failSwapOn: false,
    volumePluginDir: join(folder, 'kubelet', 'volume-plugins'),
    // The machine's disk and images are not the node's to tidy up.
    imageGCHighThresholdPercent: 100,
    evictionHard: {
      ...{ 'memory.available': '100Mi', 'nodefs.available': '0%' },
      ...{ 'nodefs.inodesFree': '0%', 'imagefs.available': '0%' },
    },
    syncFrequency: '10s',
    nodeStatusUpdateFrequency: '5s',
  })

export const kubeletFlags = (folder: string) => [
  ...[`--config=${join(folder, 'kubelet.yaml')}`, `--kubeconfig=${join(folder, 'kubelet.kubeconfig')}`],
  ...[`--root-dir=${join(folder, 'kubelet')}`, `--cert-dir=${join(folder, 'kubelet', 'pki')}`],
  ...[`--hostname-override=${NODE_NAME}`, `--node-ip=${NODE_ADDRESS}`],
]

export const schedulerFlags = (folder: string) => [
  `--kubeconfig=${join(folder, 'kube-scheduler.kubeconfig')}`,
  ...['--leader-elect=false', '--secure-port=0'],
]

export const proxyFlags = (folder: string) => [
  ...[`--kubeconfig=${join(folder, 'kube-proxy.kubeconfig')}`, `--hostname-override=${NODE_NAME}`],
  ...['--proxy-mode=nftables', `--cluster-cidr=${POD_RANGE}`, '--oom-score-adj=0'],
  // Settings of the whole machine's kernel, which are not the node's to change.
  ...['--conntrack-max-per-core=0', '--conntrack-tcp-timeout-established=0', '--conntrack-tcp-timeout-close-wait=0'],
  ...['--healthz-bind-address=127.0.0.1:10256', '--metrics-bind-address=127.0.0.1:10249'],
]

export const describeDns = (folder: string) => `
.:53 {
  bind ${NODE_ADDRESS}
  errors
  kubernetes ${CLUSTER_DOMAIN} in-addr.arpa {
    kubeconfig ${join(folder, 'coredns.kubeconfig')} heartbeat
  }
  cache 5
}
`

/** What CoreDNS may do. */
export const DNS_RIGHTS = [
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'coredns' },
    rules: [
      { apiGroups: [''], resources: ['endpoints', 'services', 'pods', 'namespaces'], verbs: ['list', 'watch'] },
      { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
    ],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'coredns' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'coredns' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'coredns' }],
  },
] as const
