"""Lists the field numbers of messages in Protocol Buffers.

Each line gives the fields of a model of the generated client in the order of their numbers, beginning with 1;
"-" is an unused number. Fields that are not listed are rejected, never dropped.

Source: the wire format of Kubernetes v1.36.
"""

from __future__ import annotations

WIRE_FIELDS: dict[str, str] = {
    "V1ObjectMeta": "name generateName namespace selfLink uid resourceVersion generation creationTimestamp "
    "deletionTimestamp deletionGracePeriodSeconds labels annotations ownerReferences finalizers - - "
    "managedFields",
    "V1OwnerReference": "kind - name uid apiVersion controller blockOwnerDeletion",
    "V1ManagedFieldsEntry": "manager operation apiVersion time - fieldsType fieldsV1 subresource",
    "V1LabelSelector": "matchLabels matchExpressions",
    "V1LabelSelectorRequirement": "key operator values",
    "V1LocalObjectReference": "name",
    "V1ObjectReference": "kind namespace name uid apiVersion resourceVersion fieldPath",
    "V1ConfigMap": "metadata data binaryData immutable",
    "V1Secret": "metadata data type stringData immutable",
    "V1Namespace": "metadata spec status",
    "V1NamespaceSpec": "finalizers",
    "V1NamespaceStatus": "phase conditions",
    "V1ServiceAccount": "metadata secrets imagePullSecrets automountServiceAccountToken",
    "V1Service": "metadata spec status",
    "V1ServiceSpec": "ports selector clusterIP type externalIPs - sessionAffinity loadBalancerIP "
    "loadBalancerSourceRanges externalName externalTrafficPolicy healthCheckNodePort "
    "publishNotReadyAddresses sessionAffinityConfig - - ipFamilyPolicy clusterIPs ipFamilies "
    "allocateLoadBalancerNodePorts loadBalancerClass internalTrafficPolicy trafficDistribution",
    "V1ServicePort": "name protocol port targetPort nodePort appProtocol",
    "V1ServiceStatus": "loadBalancer conditions",
    "V1LoadBalancerStatus": "ingress",
    "V1PodDisruptionBudget": "metadata spec status",
    "V1PodDisruptionBudgetSpec": "minAvailable selector maxUnavailable unhealthyPodEvictionPolicy",
    "V1PodDisruptionBudgetStatus": "observedGeneration disruptedPods disruptionsAllowed currentHealthy "
    "desiredHealthy expectedPods conditions",
    "V1Eviction": "metadata deleteOptions",
    "V1DeleteOptions": "gracePeriodSeconds preconditions orphanDependents propagationPolicy dryRun "
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "V1Preconditions": "uid resourceVersion",
    "V1PriorityClass": "metadata value globalDefault description preemptionPolicy",
    "V1Deployment": "metadata spec status",
    "V1DeploymentSpec": "replicas selector template strategy minReadySeconds revisionHistoryLimit paused - "
    "progressDeadlineSeconds",
    "V1DeploymentStrategy": "type rollingUpdate",
    "V1RollingUpdateDeployment": "maxUnavailable maxSurge",
    "V1DeploymentStatus": "observedGeneration replicas updatedReplicas availableReplicas unavailableReplicas "
    "conditions readyReplicas collisionCount terminatingReplicas",
    "V1PodTemplateSpec": "metadata spec",
    "V1PodSpec": "volumes containers restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds "
    "dnsPolicy nodeSelector serviceAccountName serviceAccount nodeName hostNetwork hostPID hostIPC "
    "securityContext imagePullSecrets hostname subdomain affinity schedulerName initContainers "
    "automountServiceAccountToken tolerations hostAliases priorityClassName priority dnsConfig "
    "shareProcessNamespace readinessGates runtimeClassName enableServiceLinks preemptionPolicy overhead "
    "topologySpreadConstraints ephemeralContainers setHostnameAsFQDN os hostUsers schedulingGates "
    "resourceClaims resources hostnameOverride",
    "V1PodSecurityContext": "seLinuxOptions runAsUser runAsNonRoot supplementalGroups fsGroup runAsGroup "
    "sysctls windowsOptions fsGroupChangePolicy seccompProfile appArmorProfile supplementalGroupsPolicy "
    "seLinuxChangePolicy",
    "V1Container": "name image command args workingDir ports env resources volumeMounts livenessProbe "
    "readinessProbe lifecycle terminationMessagePath imagePullPolicy securityContext stdin stdinOnce tty "
    "envFrom terminationMessagePolicy volumeDevices startupProbe resizePolicy restartPolicy "
    "restartPolicyRules",
    "V1ContainerPort": "name hostPort containerPort protocol hostIP",
    "V1EnvVar": "name value valueFrom",
    "V1ResourceRequirements": "limits requests claims",
    "V1Toleration": "key operator value effect tolerationSeconds",
    "V1Job": "metadata spec status",
    "V1JobSpec": "parallelism completions activeDeadlineSeconds selector manualSelector template "
    "backoffLimit ttlSecondsAfterFinished completionMode suspend podFailurePolicy backoffLimitPerIndex "
    "maxFailedIndexes podReplacementPolicy managedBy successPolicy",
    "V1JobStatus": "conditions startTime completionTime active succeeded failed completedIndexes "
    "uncountedTerminatedPods ready failedIndexes terminating",
    "V1CronJob": "metadata spec status",
    "V1CronJobSpec": "schedule startingDeadlineSeconds concurrencyPolicy suspend jobTemplate "
    "successfulJobsHistoryLimit failedJobsHistoryLimit timeZone",
    "V1CronJobStatus": "active - - lastScheduleTime lastSuccessfulTime",
    "V1JobTemplateSpec": "metadata spec",
    "V1SelfSubjectAccessReview": "metadata spec status",
    "V1SelfSubjectAccessReviewSpec": "resourceAttributes nonResourceAttributes",
    "V1ResourceAttributes": "namespace verb group version resource subresource name fieldSelector "
    "labelSelector",
    "V1NonResourceAttributes": "path verb",
    "V1SubjectAccessReviewStatus": "allowed reason evaluationError denied",
    "V1SelfSubjectRulesReview": "metadata spec status",
    "V1SelfSubjectRulesReviewSpec": "namespace",
    "V1SubjectRulesReviewStatus": "resourceRules nonResourceRules incomplete evaluationError",
    "V1SelfSubjectReview": "metadata status",
    "V1SelfSubjectReviewStatus": "userInfo",
    "V1UserInfo": "username uid groups extra",
    "V1Role": "metadata rules",
    "V1ClusterRole": "metadata rules aggregationRule",
    "V1PolicyRule": "verbs apiGroups resources resourceNames nonResourceURLs",
    "V1RoleBinding": "metadata subjects roleRef",
    "V1ClusterRoleBinding": "metadata subjects roleRef",
    "V1RoleRef": "apiGroup kind name",
    "RbacV1Subject": "kind apiGroup name namespace",
    "V1ResourceQuota": "metadata spec status",
    "V1ResourceQuotaSpec": "hard scopes scopeSelector",
    "V1ResourceQuotaStatus": "hard used",
}
