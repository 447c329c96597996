job "runtime" {
  group "g" {
    count = "${meta.count}"
    task "t" {
      driver = "exec"
      config {
        command = "${NOMAD_TASK_DIR}/run"
        args    = ["--node", node.unique.name, "--cpu=${attr.cpu.numcores}", "-x"]
      }
      env {
        HOME_DIR = "${env["HOME"]}"
        PLAIN    = "yes"
      }
      resources {
        memory = "${meta.memory}"
      }
    }
  }
}
