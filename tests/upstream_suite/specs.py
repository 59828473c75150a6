"""The specs of others that we are judged by, and why others of theirs are left out."""

#: Regular expressions of the suite's own names, which begin with the group of Kubernetes that owns them.
FOCUS = (
    r"\[sig-scheduling\]",
    r"\[sig-apps\] (Deployment|DisruptionController|ReplicaSet|ReplicationController|StatefulSet|Daemon set)",
)

#: Expressions of specs in focus that are left out, with the reason.
LEFT_OUT = {
    r"\[FeatureGate:GenericWorkload\]": "asks for an alpha API, and schedules nothing",
    r"\[sig-scheduling\] .*verify pod overhead": "needs a kubelet that takes up its node's capacity",
    r"\[sig-apps\].*should serve a basic image on each replica": "sends HTTP to containers",
    r"cloud load-balancer's connectivity": "needs the load balancer of a cloud",
    r"\[sig-apps\] Deployment .*(proportional scaling|support rollover)": "needs images that are missing",
    r"\[sig-apps\] Deployment .*iterative rollouts": "random actions, and no judgement of where pods run",
    r"\[sig-apps\] StatefulSet Basic StatefulSet functionality \[StatefulSetBasic\] "
    r"(should provide basic identity|should adopt matching orphans|should not deadlock"
    r"|should perform|should implement legacy replacement|Scaling should happen|Burst scaling"
    r"|Should recreate evicted)": "runs commands in containers, or needs a kubelet that judges ports",
    r"\[sig-apps\] StatefulSet (Deploy clustered|.*PVC|Non-retain)": "needs volumes that are provisioned",
    r"\[sig-apps\] Daemon set .*should rollback without": "needs images that are missing",
    r"\[sig-apps\] Daemon set .*should surge pods": "needs readiness probes that run in containers",
    r"\[sig-apps\] DisruptionController .*UnhealthyPodEvictionPolicy": "needs readiness probes, too",
}

#: Tests of descheduler that are left out, with the reason.
DESCHEDULER_LEFT_OUT = {
    "TestLowNodeUtilization|TestNamespaceConstraints(Include|Exclude)|TestEvictSystemCriticalPriority(Class)?"
    "|TestEvictDaemonSetPod|TestThresholdPriority(Class)?|TestPodLabelSelector|TestEvictAnnotation"
    "|TestPodLifeTimeOldestEvicted|TestPodLifeTime_(Failed|Succeeded)Pods": (
        "call a plugin in the test's own process: no Deployment, so no descheduler takes part"
    ),
    "TestDeschedulingInterval|TestClientConnectionConfiguration": (
        "run descheduler's code in the test's own process, and judge that it returns"
    ),
    "TestLeaderElection": (
        "judges that one of two deschedulers with different files acts; policies of ours are objects of the "
        "cluster, and the leader carries out all of them"
    ),
    "TestLiveMigrationInBackground": "needs KubeVirt and its virtual machines",
}
