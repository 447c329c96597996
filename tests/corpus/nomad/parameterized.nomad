job "transcode" {
  type = "batch"
  parameterized {
    payload       = "required"
    meta_required = ["profile"]
  }
  group "g" {
    task "ffmpeg" {
      driver = "exec"
      config {
        command = "ffmpeg"
        args    = ["-i", "${NOMAD_TASK_DIR}/input", "-preset", "${NOMAD_META_profile}"]
      }
      dispatch_payload { file = "input" }
      resources {
        cores  = 4
        memory = 3000
      }
    }
  }
}
