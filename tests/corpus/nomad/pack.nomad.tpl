job [[ template "job_name" . ]] {
  [[ template "region" . ]]
  group "g" {
    count = [[ var "count" . ]]
    task "t" {
      driver = "docker"
    }
  }
}
